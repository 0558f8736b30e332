//! Profiles that the lab has published, and their files.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use layerlab_lab::query::{IndexedProfile, indexed_profiles, newest_of_each};
use layerlab_lab::record::RunNumber;
use layerlab_profiles::document::ProfileDigest;
use layerlab_profiles::sha256;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::list::{Chosen, List};
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::published::PublishedProfile;

/// A published profile.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownProfile {
    /// The number of the run that gave it, by which it is found here.
    run: i64,
    /// The job that asked for it.
    job: i64,
    /// The model's name.
    model: String,
    /// What the lab calls the device.
    device: String,
    /// Whether the device is simulated: its times are then modelled, not measured.
    simulated: bool,
    /// When it was published.
    published: Timestamp,
    /// What its content is called, as `layerlab check --digest` takes it; nothing if its folder is gone.
    digest: Option<String>,
}

impl From<IndexedProfile> for ShownProfile {
    fn from(profile: IndexedProfile) -> ShownProfile {
        let digest = ProfileDigest::of_folder(&profile.folder).ok();
        ShownProfile {
            digest: digest.map(|digest| digest.to_string()),
            run: profile.run,
            job: profile.job,
            model: profile.model,
            device: profile.device,
            simulated: profile.simulated,
            published: profile.published,
        }
    }
}

/// Which profiles.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ChosenProfiles {
    /// Of the model of this name.
    model: Option<String>,
    /// On the device of this name, serial or address.
    device: Option<String>,
    /// Published then or later.
    since: Option<Timestamp>,
    /// Published before.
    until: Option<Timestamp>,
    /// Of each model on each device, only the newest of these.
    #[serde(default)]
    newest: bool,
    /// The number of the page, from 1; pages have 50 profiles each.
    #[param(minimum = 1)]
    page: Option<usize>,
}

/// The profiles that the lab has published, by model and device, the newest of each first.
#[utoipa::path(
    get,
    path = "/api/v1/profiles",
    operation_id = "list_profiles",
    params(ChosenProfiles),
    responses(
        (status = OK, body = List<ShownProfile>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<WebState>,
    InQuery(chosen): InQuery<ChosenProfiles>,
) -> Result<Json<List<ShownProfile>>, Problem> {
    let kept = state.lab.reader.all().await?;
    let mut profiles = indexed_profiles(&kept, chosen.model.as_deref(), chosen.device.as_deref());
    profiles.retain(|profile| {
        chosen.since.is_none_or(|since| profile.published >= since)
            && chosen.until.is_none_or(|until| profile.published < until)
    });
    if chosen.newest {
        newest_of_each(&mut profiles);
    }
    let page = Chosen { page: chosen.page };
    // Their folders are looked into.
    let listed = tokio::task::spawn_blocking(move || List::of(profiles, &page, ShownProfile::from));
    Ok(Json(listed.await.map_err(Problem::internal)?))
}

/// A published profile and its files.
#[derive(Serialize, ToSchema)]
pub(super) struct ProfileInFull {
    /// The profile itself.
    #[serde(flatten)]
    profile: ShownProfile,
    /// The names of its files.
    files: Vec<String>,
}

/// One profile, and which files it has.
#[utoipa::path(
    get,
    path = "/api/v1/profiles/{run}",
    operation_id = "show_profile",
    params(("run" = i64, Path, description = "The number of the run that gave it")),
    responses(
        (status = OK, body = ProfileInFull),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(run): InPath<RunNumber>,
) -> Result<Json<ProfileInFull>, Problem> {
    let profile = PublishedProfile::of_run(&state.lab.reader, run).await?;
    let looked = tokio::task::spawn_blocking(move || {
        let files = profile.files()?;
        let profile = profile.0.into();
        Ok::<_, Problem>(ProfileInFull { profile, files })
    });
    Ok(Json(looked.await.map_err(Problem::internal)??))
}

/// One file of a profile. What is published never changes, so that it may be kept.
#[utoipa::path(
    get,
    path = "/api/v1/profiles/{run}/files/{name}",
    operation_id = "download_profile_file",
    params(
        ("run" = i64, Path, description = "The number of the run that gave the profile"),
        ("name" = String, Path, description = "The name of the file, as the profile lists it"),
        ("if-none-match" = Option<String>, Header, description = "The ETag of a copy that is there already"),
    ),
    responses(
        (status = OK, description = "The file", body = [u8], content_type = "application/octet-stream"),
        (status = NOT_MODIFIED, description = "The copy is right"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn file(
    State(state): State<WebState>,
    InPath((run, name)): InPath<(RunNumber, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let profile = PublishedProfile::of_run(&state.lab.reader, run).await?;
    let wanted = name.clone();
    let read = tokio::task::spawn_blocking(move || profile.file(&wanted));
    let Some(content) = read.await.map_err(Problem::internal)?? else {
        let detail = format!(
            "the profile of run {run} has no file of this name; /api/v1/profiles/{run} lists them"
        );
        return Err(Problem::not_found(detail));
    };
    // Weak, as the same may come compressed or not.
    let tag = format!("W/\"{}\"", sha256(&content));
    let kind = match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("json") => "application/json",
        Some("csv") => "text/csv; charset=utf-8",
        // A picture that came from somewhere could run what is in it.
        _ => "application/octet-stream",
    };
    Ok(unless_known(&headers, &tag, || {
        ([(header::CONTENT_TYPE, kind)], content).into_response()
    }))
}

/// All files of a profile in one: a ZIP archive. What is published never changes, so that it may be kept.
#[utoipa::path(
    get,
    path = "/api/v1/profiles/{run}/archive",
    operation_id = "download_profile_archive",
    params(
        ("run" = i64, Path, description = "The number of the run that gave the profile"),
        ("if-none-match" = Option<String>, Header, description = "The ETag of a copy that is there already"),
    ),
    responses(
        (status = OK, description = "The archive", body = [u8], content_type = "application/zip"),
        (status = NOT_MODIFIED, description = "The copy is right"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn archive(
    State(state): State<WebState>,
    InPath(run): InPath<RunNumber>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let profile = PublishedProfile::of_run(&state.lab.reader, run).await?;
    let packed = tokio::task::spawn_blocking(move || profile.archive());
    let content = packed.await.map_err(Problem::internal)??;
    // Weak, as the same may come compressed or not.
    let tag = format!("W/\"{}\"", sha256(&content));
    let name = format!("attachment; filename=\"profile-{run}.zip\"");
    Ok(unless_known(&headers, &tag, || {
        let kind = [
            (header::CONTENT_TYPE, "application/zip"),
            (header::CONTENT_DISPOSITION, name.as_str()),
        ];
        (kind, content).into_response()
    }))
}

/// `answer` with its tag, or that whoever asks has it already.
fn unless_known(headers: &HeaderMap, tag: &str, answer: impl FnOnce() -> Response) -> Response {
    let kept = [
        (header::ETAG, tag),
        (
            header::CACHE_CONTROL,
            "private, max-age=31536000, immutable",
        ),
    ];
    let same = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut same = same.filter_map(|tags| tags.to_str().ok());
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let is_same = |one: &str| opaque(one) == opaque(tag);
    match same.any(|tags| tags == "*" || tags.split(',').any(is_same)) {
        true => (StatusCode::NOT_MODIFIED, kept).into_response(),
        false => (kept, answer()).into_response(),
    }
}
