//! The files beside a model's that hold weights of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use layerlab_profiles::Hash;
use layerlab_profiles::document::HashedFile;
use tract_onnx::pb::{ModelProto, TensorProto, tensor_proto::DataLocation};

use crate::ModelError;

/// How much of a file is in memory at once.
const PORTION: usize = 1 << 20;

/// The names of the files, as the model gives them, each with a tensor that it holds.
pub(crate) fn locations(model: &ModelProto) -> BTreeMap<String, String> {
    let Some(graph) = &model.graph else {
        return BTreeMap::new();
    };
    let attributes = graph.node.iter().flat_map(|node| &node.attribute);
    let in_attributes =
        attributes.flat_map(|attribute| attribute.t.iter().chain(&attribute.tensors));
    let tensors = graph.initializer.iter().chain(in_attributes);
    tensors
        .filter_map(|tensor| Some((location(tensor)?, tensor.name.clone())))
        .collect()
}

fn location(tensor: &TensorProto) -> Option<String> {
    let mut entries = tensor.external_data.iter();
    let external = tensor.data_location == Some(DataLocation::External as i32);
    let entry = entries.find(|entry| external && entry.key == "location")?;
    Some(entry.value.clone())
}

/// The files with their hashes, sorted by name. They lie in `folder`, as reading the tensors has shown.
pub(crate) fn hashed(
    folder: &Path,
    locations: BTreeMap<String, String>,
) -> Result<Vec<HashedFile>, ModelError> {
    let one = |(location, tensor): (String, String)| match sha256_of(&folder.join(&location)) {
        Ok(sha256) => Ok(HashedFile {
            name: location,
            sha256,
        }),
        Err(reason) => Err(ModelError::ExternalData {
            tensor,
            location,
            reason: reason.to_string(),
        }),
    };
    locations.into_iter().map(one).collect()
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Hash::default();
    let mut portion = vec![0; PORTION];
    loop {
        match file.read(&mut portion)? {
            0 => return Ok(hash.finish()),
            count => hash.update(&portion[..count]),
        }
    }
}
