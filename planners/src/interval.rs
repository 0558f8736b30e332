//! An interval of T(L) where only the layer times' own intervals are known, not how they err together.

use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Combination, SignedNanos};

/// `total`, which is T(L), with a 95 % interval that is never too narrow for normal errors.
///
/// CPU times are medians of different samples: their half-widths add in squares. The NPU's times are
/// differences of the same segments and err together in ways that the published table does not say; the
/// standard deviation of a sum is at most the sum of the standard deviations, so half-widths are added.
pub(crate) fn bound(
    total: SignedNanos,
    cpu: &[LayerTime],
    npu: &[LayerTime],
    combination: &Combination,
) -> Option<(SignedNanos, SignedNanos)> {
    let (mut squares, mut sum) = (0.0, 0.0);
    for ((&on_npu, cpu), npu) in combination.on_npu().iter().zip(cpu).zip(npu) {
        if on_npu {
            sum += half_width(npu.compute)?;
        } else {
            squares += half_width(cpu.compute)?.powi(2);
        }
    }
    for run in combination.npu_runs() {
        let entering = npu.get(run.first() as usize - 1)?.to_processor;
        let leaving = npu.get(run.last() as usize - 1)?.from_processor;
        for transfer in [entering, leaving].into_iter().flatten() {
            sum += half_width(transfer)?;
        }
    }
    let half_width = SignedNanos::from_nanos((squares + sum * sum).sqrt().ceil() as i64);
    Some((total - half_width, total + half_width))
}

fn half_width(estimate: Estimate) -> Option<f64> {
    let (low, high) = estimate.ci95?;
    Some((high - low).as_nanos() as f64 / 2.0)
}
