//! Long lists in pages.

use layerlab_lab::query::Page;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub(super) struct List<T> {
    /// What is on the page.
    items: Vec<T>,
    /// Its number, from 1.
    page: usize,
    /// How many things are on all pages together.
    all: usize,
}

impl<T> List<T> {
    /// The chosen page of `rows`, each as `shown` has it.
    pub(super) fn of<R>(rows: Vec<R>, chosen: &Chosen, shown: impl FnMut(R) -> T) -> List<T> {
        let (page, all) = (chosen.page.unwrap_or(1).max(1), rows.len());
        let rows = Page::new(page).of(rows);
        let items = rows.into_iter().map(shown).collect();
        List { items, page, all }
    }
}

/// Which page of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Chosen {
    /// The number of the page, from 1; pages have 50 things each.
    #[param(minimum = 1)]
    pub(super) page: Option<usize>,
}
