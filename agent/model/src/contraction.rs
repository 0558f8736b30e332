//! What an Einsum goes through: the lengths of its indices, from its equation and the shapes that it works on.

use std::collections::BTreeMap;

/// An index of an equation: a letter, or one of the axes that an ellipsis stands for, counted from the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Index {
    Letter(char),
    Unnamed(usize),
}

/// The product of the lengths of all indices of `equation`, which is how many products of one element of each input there are;
/// nothing where the equation is not one of inputs of these shapes.
pub(crate) fn terms(equation: &str, inputs: &[&[u64]]) -> Option<u64> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let taken = equation
        .split_once("->")
        .map_or(&*equation, |(taken, _)| taken);
    let parts: Vec<&str> = taken.split(',').collect();
    if parts.len() != inputs.len() {
        return None;
    }
    let mut lengths: BTreeMap<Index, u64> = BTreeMap::new();
    for (part, shape) in parts.into_iter().zip(inputs) {
        let indices = indices(part, shape.len())?;
        for (index, &length) in indices.into_iter().zip(*shape) {
            // An axis of one is repeated along the other's.
            let known = lengths.entry(index).or_insert(length);
            *known = length.max(*known);
        }
    }
    let product = |all: u64, length: &u64| all.saturating_mul(*length);
    Some(lengths.values().fold(1, product))
}

/// The index of each of `axes` axes.
fn indices(part: &str, axes: usize) -> Option<Vec<Index>> {
    let letters = |text: &str| text.chars().map(Index::Letter).collect::<Vec<_>>();
    let Some((before, after)) = part.split_once("...") else {
        let all = letters(part);
        return (all.len() == axes).then_some(all);
    };
    let (before, after) = (letters(before), letters(after));
    let unnamed = axes.checked_sub(before.len() + after.len())?;
    let unnamed = (0..unnamed).rev().map(Index::Unnamed);
    Some(before.into_iter().chain(unnamed).chain(after).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_indices_count_once() {
        // A product of matrices, of several at once, an outer product, a trace, and three inputs.
        assert_eq!(terms("ij,jk->ik", &[&[3, 4], &[4, 5]]), Some(60));
        assert_eq!(
            terms("bhqd, bhkd -> bhqk", &[&[1, 2, 3, 8], &[1, 2, 5, 8]]),
            Some(240)
        );
        assert_eq!(terms("i,j", &[&[3], &[4]]), Some(12));
        assert_eq!(terms("ii", &[&[6, 6]]), Some(6));
        assert_eq!(terms("i,ij,j->", &[&[3], &[3, 4], &[4]]), Some(12));
        // Axes without a name are the same from the last on, and those of one are repeated.
        assert_eq!(
            terms("...ij,...jk->...ik", &[&[7, 2, 3, 4], &[2, 4, 5]]),
            Some(840)
        );
        assert_eq!(terms("...ij,jk", &[&[3, 4], &[4, 5]]), Some(60));
        assert_eq!(terms("b...,b...->b", &[&[2, 1, 5], &[2, 6, 5]]), Some(60));
    }

    #[test]
    fn an_equation_of_other_inputs_says_nothing() {
        assert_eq!(terms("ij,jk->ik", &[&[3, 4]]), None);
        assert_eq!(terms("ij->ji", &[&[3, 4, 5]]), None);
        assert_eq!(terms("...abc->c", &[&[3, 4]]), None);
    }

    #[test]
    fn absurd_lengths_saturate() {
        let most = u64::MAX;
        assert_eq!(terms("i,j", &[&[most], &[most]]), Some(most));
    }
}
