//! Files that jobs bring: models and evaluation sets, by their content.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

use crate::access::Operator;
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::uploads::{ContentHash, Uploaded, no_room};

/// Of a file that is sent something comes within this.
const DEADLINE: Duration = Duration::from_secs(30);

/// A file that jobs may bring.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownFile {
    /// SHA-256 of its content.
    sha256: String,
    /// How much of it is there.
    bytes: u64,
    /// Whether that is all of it.
    whole: bool,
}

impl ShownFile {
    fn of(hash: &ContentHash, uploaded: &Uploaded) -> ShownFile {
        ShownFile {
            sha256: hash.as_str().to_owned(),
            bytes: uploaded.bytes,
            whole: uploaded.is_whole,
        }
    }
}

/// How much of a file is there.
#[utoipa::path(
    get,
    path = "/api/v1/files/{sha256}",
    operation_id = "show_file",
    params(("sha256" = String, Path, description = "SHA-256 of its content, in hexadecimal digits")),
    responses(
        (status = OK, body = ShownFile),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(state): State<WebState>,
    Operator(_): Operator,
    InPath(sha256): InPath<String>,
) -> Result<Json<ShownFile>, Problem> {
    let hash = ContentHash::parse(&sha256)?;
    match state.lab.uploads.find(&hash) {
        Some(uploaded) => Ok(Json(ShownFile::of(&hash, &uploaded))),
        None => Err(Problem::not_found(
            "nothing of this file is here; send it with PUT",
        )),
    }
}

/// Where the body begins.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Offset {
    /// How many bytes of the file came before, if sending it broke off.
    #[serde(default)]
    offset: u64,
}

/// Send a file, so that a job may bring it: the body is all of it, or what follows `offset` bytes that are there. What came
/// before a connection broke is kept; GET says how much that is. A job names it under `files`, by the name that its `models`
/// say: `[files]` and `"net.onnx" = "SHA-256"`. It is kept for a day.
#[utoipa::path(
    put,
    path = "/api/v1/files/{sha256}",
    operation_id = "upload_file",
    params(
        ("sha256" = String, Path, description = "SHA-256 of its content, in hexadecimal digits"),
        Offset,
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = OK, description = "It was there already", body = ShownFile),
        (status = CREATED, body = ShownFile),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn put(
    State(state): State<WebState>,
    Operator(_): Operator,
    InPath(sha256): InPath<String>,
    InQuery(Offset { offset }): InQuery<Offset>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<ShownFile>), Problem> {
    let uploads = state.lab.uploads.clone();
    if !uploads.are_taken() {
        let detail = "this lab takes no uploads; `web.upload-mebibytes` in its configuration is 0";
        return Err(Problem::usage(StatusCode::FORBIDDEN, detail));
    }
    let hash = ContentHash::parse(&sha256)?;
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    uploads.check_length(offset.saturating_add(announced.unwrap_or(0)))?;
    if let Some(there) = uploads.find(&hash).filter(|it| it.is_whole) {
        return Ok((StatusCode::OK, Json(ShownFile::of(&hash, &there))));
    }
    let wanted = (uploads.clone(), hash.clone());
    let opened = tokio::task::spawn_blocking(move || wanted.0.receive(wanted.1, offset, announced));
    let mut receiving = opened.await.map_err(Problem::internal)??;
    let file = receiving
        .file
        .try_clone()
        .map_err(|error| no_room(&error))?;
    let mut file = tokio::fs::File::from_std(file);
    let mut chunks = body.into_data_stream();
    let mut bytes = receiving.bytes;
    loop {
        let chunk = match timeout(DEADLINE, chunks.next()).await {
            Ok(None) => break,
            Ok(Some(Ok(chunk))) => chunk,
            // What came is there when the client goes on.
            Ok(Some(Err(_))) | Err(_) => {
                let _ = file.flush().await;
                let detail =
                    format!("the file broke off; send what follows with `?offset={bytes}`");
                return Err(Problem::usage(StatusCode::REQUEST_TIMEOUT, detail));
            }
        };
        bytes = bytes.saturating_add(chunk.len() as u64);
        if let Err(problem) = uploads.check_length(bytes) {
            receiving.discard();
            return Err(problem);
        }
        file.write_all(&chunk)
            .await
            .map_err(|error| no_room(&error))?;
    }
    file.flush().await.map_err(|error| no_room(&error))?;
    receiving.bytes = bytes;
    let finished = tokio::task::spawn_blocking(move || receiving.finish());
    let uploaded = finished.await.map_err(Problem::internal)??;
    Ok((StatusCode::CREATED, Json(ShownFile::of(&hash, &uploaded))))
}
