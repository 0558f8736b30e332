//! Files are copied as they were checked, or the job is refused.

use layerlab_objects::{Objects, ObjectsPlace, S3Variables};

use super::*;
use crate::job::ModelSpec;
use crate::job_file::JobFile;

struct Submitted {
    folder: tempfile::TempDir,
    path: PathBuf,
    request: Request,
}

impl Submitted {
    fn new(model: &str, sizes: SymbolicSizes) -> Submitted {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("net.onnx");
        std::fs::copy(test_model(model), &path).expect("a model");
        let model = ModelFile::open(&path, &sizes).expect("a model");
        let spec = JobSpec {
            models: vec![ModelSpec {
                name: model.network.name().to_owned(),
                sha256: model.sha256,
                source_sha256: model.source_sha256,
                external_weights: model.external_weights,
                quantised: None,
                path: path.clone(),
            }],
            ..JobSpec::default()
        };
        let request = Request::Submit {
            spec: Box::new(spec),
            again: false,
            sizes: vec![sizes],
        };
        Submitted {
            folder,
            path,
            request,
        }
    }

    async fn take_in(&self) -> Result<(), Answer> {
        Intake::new(
            Library::in_state(self.folder.path()),
            self.folder.path().join("profiles"),
        )
        .take_in(&self.request)
        .await
    }

    async fn refused(&self) -> (RefusalCode, String) {
        match self.take_in().await {
            Err(Answer::Refused { code, message }) => (code, message),
            other => panic!("{other:?}"),
        }
    }

    fn kept(&self) -> Result<ModelFile, crate::library::LibraryError> {
        let Request::Submit { spec, .. } = &self.request else {
            panic!("it submits a job");
        };
        Library::in_state(self.folder.path()).model(&spec.models[0])
    }
}

fn test_model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/models")
        .join(name)
}

#[tokio::test]
async fn a_model_is_copied_whatever_happens_to_the_user_s_file_then() {
    let sizes = [("H".to_owned(), 32), ("W".to_owned(), 32)].into();
    let job = Submitted::new("variants/symbolic-size.onnx", sizes);
    assert_eq!(job.take_in().await, Ok(()));
    std::fs::remove_file(&job.path).expect("removed");
    assert!(job.kept().is_ok());
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_checked_is_refused() {
    let job = Submitted::new("variants/residual.onnx", SymbolicSizes::new());
    std::fs::copy(test_model("inception.onnx"), &job.path).expect("another model");
    let path = job.path.display();
    let sentence =
        format!("the model `{path}` has changed since the job was read; submit it again");
    assert_eq!(job.refused().await, (RefusalCode::FileChanged, sentence));
    assert!(job.kept().is_err(), "nothing was copied");
    std::fs::remove_file(&job.path).expect("removed");
    let (code, message) = job.refused().await;
    assert_eq!(code, RefusalCode::FileChanged);
    assert!(message.contains("submit the job again"), "{message}");
}

#[tokio::test]
async fn a_copy_that_cannot_be_kept_is_refused() {
    let job = Submitted::new("variants/residual.onnx", SymbolicSizes::new());
    // Where the folder of copies would be.
    std::fs::write(job.folder.path().join("lab"), "").expect("a file");
    let (code, message) = job.refused().await;
    assert_eq!(code, RefusalCode::NoCopy);
    assert!(
        message.starts_with("cannot keep a copy of the model"),
        "{message}"
    );
}

#[tokio::test]
async fn a_job_whose_files_other_hosts_would_not_find_is_refused() {
    let job = Submitted::new("variants/residual.onnx", SymbolicSizes::new());
    let folder = job.folder.path().join("objects");
    let place = ObjectsPlace::Folder(folder.clone());
    let objects = Objects::open(&place, &S3Variables::default()).expect("a folder");
    let library = Library::in_state(job.folder.path()).before(objects, 1 << 30);
    let intake = Intake::new(library, job.folder.path().join("profiles"));
    // Nobody can make a file in a file, whoever the tests are run by.
    std::fs::remove_dir(&folder).expect("it is empty");
    std::fs::write(&folder, "").expect("room");
    let Err(Answer::Refused { code, message }) = intake.take_in(&job.request).await else {
        panic!("it is refused");
    };
    assert_eq!(code, RefusalCode::NotShared);
    let beginning = format!(
        "the job's files cannot be kept for all hosts: cannot use the folder {}: ",
        folder.display()
    );
    assert!(message.starts_with(&beginning), "{message}");
    assert!(
        message.ends_with("submit the job again once that is mended"),
        "{message}"
    );
    std::fs::remove_file(&folder).expect("mended");
    assert_eq!(intake.take_in(&job.request).await, Ok(()));
    let hash = job.kept().expect("a model").sha256;
    assert!(folder.join("sha256").join(&hash[..2]).join(&hash).is_file());
}

#[tokio::test]
async fn a_quantised_twin_is_copied_with_its_model_and_comes_back_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (model, twin) = (
        test_model("inception.onnx"),
        test_model("quantised/inception.onnx"),
    );
    let text = format!(
        "models = [{{ file = {model:?}, quantised = {twin:?} }}]\n[[devices]]\nserial = \"R58\"\n"
    );
    let path = folder.path().join("job.toml");
    std::fs::write(&path, text).expect("room");
    let job = JobFile::read(&path).expect("a job file");
    let resolved = job.resolve(jiff::Timestamp::UNIX_EPOCH).expect("a job");
    let spec = resolved.spec;
    let of_twin = spec.models[0].quantised.clone().expect("a twin");
    let intake = Intake::new(
        Library::in_state(folder.path()),
        folder.path().join("profiles"),
    );
    let submitted = |spec: &JobSpec| Request::Submit {
        spec: Box::new(spec.clone()),
        again: false,
        sizes: resolved.sizes.clone(),
    };
    intake
        .take_in(&submitted(&spec))
        .await
        .expect("it is copied");
    let kept = Library::in_state(folder.path()).model(&spec.models[0]);
    let kept = kept.expect("a model").quantised.expect("its twin");
    assert_eq!(
        (&kept.sha256, &kept.source),
        (&of_twin.sha256, &of_twin.source)
    );

    let mut alone = spec.clone();
    alone.models[0].quantised = None;
    assert_ne!(alone.content_sha256(), spec.content_sha256());
    let mut changed = spec;
    let expected = changed.models[0].quantised.as_mut().expect("a twin");
    expected.source.sha256 = "00".repeat(32);
    let refused = intake.take_in(&submitted(&changed)).await;
    let is_changed = |answer: Answer| match answer {
        Answer::Refused { code, .. } => code == RefusalCode::FileChanged,
        _ => false,
    };
    assert!(refused.is_err_and(is_changed));
}

#[tokio::test]
async fn a_job_whose_profiles_could_not_be_published_is_refused_before_it_is_measured() {
    let mut submitted = Submitted::new("alexnet.onnx", SymbolicSizes::new());
    // Nobody can make a folder in a file, whoever the tests are run by.
    let folder = submitted.path.join("profiles");
    let Request::Submit { spec, .. } = &mut submitted.request else {
        panic!("it submits a job");
    };
    spec.profiles = Some(folder.clone());
    let (code, message) = submitted.refused().await;
    assert_eq!(code, RefusalCode::NoPublication);
    assert!(
        message.contains(&folder.display().to_string()) && message.contains("`profiles`"),
        "{message}"
    );
    // The lab's own folder is looked at when the job names none.
    let Request::Submit { spec, .. } = &mut submitted.request else {
        panic!("it submits a job");
    };
    spec.profiles = None;
    let intake = Intake::new(Library::in_state(submitted.folder.path()), folder);
    let Err(Answer::Refused { code, message }) = intake.take_in(&submitted.request).await else {
        panic!("it is refused");
    };
    assert_eq!(code, RefusalCode::NoPublication);
    assert!(message.contains("configuration"), "{message}");
    assert_eq!(submitted.take_in().await, Ok(()));
}
