//! What is true of an image, as the metric asks for it.

use std::collections::BTreeSet;

use layerlab_profiles::accuracy::{Metric, ObjectBox, Truth};

use super::error::SetError;
use super::listing::{Corners, Listed, Object};
use super::preprocess::Frame;

/// What the listed image shows; it has this width and height and comes to lie in `frame`.
pub(super) fn truth(
    metric: &Metric,
    listed: &Listed,
    size: (u32, u32),
    frame: Frame,
) -> Result<Truth, SetError> {
    let boxes = listed
        .objects
        .iter()
        .map(|object| object_box(object, size, frame))
        .collect::<Result<Vec<_>, _>>()?;
    if metric.judges_boxes() {
        return Ok(Truth::Boxes(boxes.into_iter().flatten().collect()));
    }
    let labels: BTreeSet<u32> = listed.objects.iter().map(|object| object.class).collect();
    if matches!(metric, Metric::TopK { .. }) && labels.len() != 1 {
        return Err(SetError::NotOne {
            place: listed.place.clone(),
            name: listed.name(),
            labels: labels.len(),
        });
    }
    Ok(Truth::Labels(labels.into_iter().collect()))
}

/// The object's box as shares of the network's input, which is what networks answer; `None` if it has none.
fn object_box(
    object: &Object,
    size: (u32, u32),
    frame: Frame,
) -> Result<Option<ObjectBox>, SetError> {
    let Some(corners) = object.corners else {
        return Ok(None);
    };
    let clipped = corners.clipped(size).map_err(|problem| SetError::Box {
        place: object.place.clone(),
        problem,
    })?;
    let Corners {
        left,
        top,
        right,
        bottom,
    } = clipped;
    let across = f64::from(frame.width) / f64::from(size.0);
    let down = f64::from(frame.height) / f64::from(size.1);
    let (width, height) = (f64::from(frame.input.0), f64::from(frame.input.1));
    Ok(Some(ObjectBox {
        class: object.class,
        x: ((f64::from(frame.left) + left * across) / width) as f32,
        y: ((f64::from(frame.top) + top * down) / height) as f32,
        width: ((right - left) * across / width) as f32,
        height: ((bottom - top) * down / height) as f32,
    }))
}
