//! tract's optimiser, kept from changing answers according to where a network is cut.
//!
//! Two of tract's rewrites give other roundings and apply only to what they see within one segment:
//!
//! - A product over a concatenated axis (Gemm, MatMul, 1 x 1 convolution) becomes a sum of products. This
//!   is left out.
//! - A scale or shift for each channel is folded into the weights of the convolution before it if nothing
//!   else in the segment reads that. This is left out where something beyond the segment reads it, so that
//!   the fold happens either in every segment or in none; where the scale is computed, for it may come from
//!   another layer; and where the convolution is what is subtracted or divided by, where the fold is wrong.
//!
//! A third one, which merges twin nodes, is left out because it loses one of three twins of which two are
//! outputs: a model that runs uncut would fail when it is cut there.
//!
//! Everything else that tract does keeps every bit, as far as the tests have found.

use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::{TypedModelPatch, TypedNode};
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::dummy::Dummy;
use tract_onnx::tract_core::ops::math::{Add, Mul};
use tract_onnx::tract_core::optim::{Optimizer, OptimizerSession, TypedPass};

/// What tract calls the pass that splits products of concatenations.
const SPLIT_OF_CONCATENATIONS: &str = "ConcatThenEinsum";
/// What tract calls the pass that merges nodes that do the same to the same tensor.
const MERGE_OF_TWINS: &str = "PushSplitDown";
/// What tract calls the pass in which operators rewrite themselves and their neighbours.
const REWRITES_BY_OPERATORS: &str = "declutter";
/// What tract calls the fold of scales and shifts into a convolution.
const FOLD_INTO_CONVOLUTION: &str = "declutter_channel_arithmetic_succ";

/// Optimises `model` like tract's `into_optimized`, less what depends on cuts.
pub(crate) fn optimize(mut model: TypedModel) -> TractResult<TypedModel> {
    independent_of_cuts(Optimizer::declutter()).optimize(&mut model)?;
    model.optimize_with_session(&mut independent_of_cuts(Optimizer::codegen()).session())?;
    Ok(model)
}

fn independent_of_cuts(mut optimizer: Optimizer) -> Optimizer {
    let left_out = [SPLIT_OF_CONCATENATIONS, MERGE_OF_TWINS];
    optimizer
        .passes
        .retain(|pass| !left_out.contains(&name(pass.as_ref()).as_str()));
    for pass in &mut optimizer.passes {
        if name(pass.as_ref()) == REWRITES_BY_OPERATORS {
            *pass = Box::new(OperatorRewrites { next: 0 });
        }
    }
    optimizer
}

/// The name with which a pass begins to describe itself.
fn name(pass: &dyn TypedPass) -> String {
    format!("{pass:?}")
        .chars()
        .take_while(|c| c.is_alphanumeric())
        .collect()
}

/// tract's pass of the same purpose, with an eye on what is folded.
#[derive(Clone, Debug)]
struct OperatorRewrites {
    /// The node to go on from.
    next: usize,
}

impl TypedPass for OperatorRewrites {
    fn reset(&mut self) -> TractResult<()> {
        self.next = 0;
        Ok(())
    }

    fn next(
        &mut self,
        session: &mut OptimizerSession,
        model: &TypedModel,
    ) -> TractResult<Option<TypedModelPatch>> {
        for node in model
            .nodes
            .iter()
            .skip(self.next)
            .filter(|node| !node.op_is::<Dummy>())
        {
            let Some(patch) = node.op.declutter_with_session(session, model, node)? else {
                continue;
            };
            let folds = patch
                .context
                .iter()
                .any(|step| step == FOLD_INTO_CONVOLUTION);
            if folds && !same_fold_in_every_segment(model, node) {
                continue;
            }
            self.next = node.id + usize::from(patch.dont_apply_twice.is_some());
            return Ok(Some(patch));
        }
        Ok(None)
    }
}

/// Whether folding what follows the convolution `node` into it is right, and happens wherever the model is
/// cut.
fn same_fold_in_every_segment(model: &TypedModel, node: &TypedNode) -> bool {
    let Some(&[reader]) = node.outputs.first().map(|output| &*output.successors) else {
        return false;
    };
    let read_beyond = model.outputs.contains(&node.id.into());
    let follower = model.node(reader.node);
    let other = follower.inputs.get(1_usize.wrapping_sub(reader.slot));
    let constant = other
        .and_then(|&other| model.outlet_fact(other).ok())
        .is_some_and(|fact| fact.konst.is_some());
    let commutes = follower
        .op_as::<TypedBinOp>()
        .is_some_and(|op| op.0.is::<Add>() || op.0.is::<Mul>());
    !read_beyond && constant && (reader.slot == 0 || commutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracts_passes_still_have_these_names() {
        let names = |optimizer: Optimizer| -> Vec<String> {
            optimizer
                .passes
                .iter()
                .map(|pass| name(pass.as_ref()))
                .collect()
        };
        for (theirs, ours, left_out) in [
            (
                Optimizer::declutter(),
                independent_of_cuts(Optimizer::declutter()),
                2,
            ),
            (
                Optimizer::codegen(),
                independent_of_cuts(Optimizer::codegen()),
                1,
            ),
        ] {
            let (theirs, ours) = (names(theirs), names(ours));
            assert_eq!(theirs.len(), ours.len() + left_out);
            let count = |names: &[String], name: &str| names.iter().filter(|n| *n == name).count();
            assert_eq!(count(&theirs, REWRITES_BY_OPERATORS), 1);
            assert_eq!(count(&ours, REWRITES_BY_OPERATORS), 0);
            assert_eq!(count(&ours, "OperatorRewrites"), 1);
        }
    }
}
