//! All placements, each one moved layer from the one before, so that sums of features are carried on.

/// The way from all layers on processor 0 through all other placements, each once, moving one layer in each
/// step: the reflected Gray code in the base of the number of processors (Knuth, The Art of Computer
/// Programming, volume 4A, 7.2.1.1, algorithm H).
pub(super) struct GrayCode {
    processors: usize,
    /// The processor of each layer.
    digits: Vec<usize>,
    /// Whether each layer's processor is on its way up.
    rising: Vec<bool>,
    /// Which layer moves next: the first that no lower one holds back.
    focus: Vec<usize>,
}

impl GrayCode {
    pub(super) fn new(layers: usize, processors: usize) -> GrayCode {
        GrayCode {
            processors,
            digits: vec![0; layers],
            rising: vec![true; layers],
            focus: (0..=layers).collect(),
        }
    }
}

impl Iterator for GrayCode {
    /// The index of the layer that moves, and the processor that it moves to.
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let index = std::mem::take(&mut self.focus[0]);
        let digit = self.digits.get_mut(index)?;
        match self.rising[index] {
            true => *digit += 1,
            false => *digit -= 1,
        }
        let to = *digit;
        if to == 0 || to + 1 == self.processors {
            self.rising[index] = !self.rising[index];
            self.focus[index] = std::mem::replace(&mut self.focus[index + 1], index + 1);
        }
        Some((index, to))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_way_comes_by_every_placement_once() {
        for (layers, processors) in [(1, 2), (1, 4), (5, 2), (4, 3), (6, 3), (4, 4)] {
            let mut placement = vec![0_usize; layers];
            let mut seen = BTreeSet::from([placement.clone()]);
            for (index, to) in GrayCode::new(layers, processors) {
                assert_eq!(placement[index].abs_diff(to), 1, "one step up or down");
                placement[index] = to;
                assert!(seen.insert(placement.clone()), "{placement:?} came twice");
            }
            assert_eq!(seen.len(), processors.pow(layers as u32));
        }
    }
}
