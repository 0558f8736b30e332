//! How layer times follow from samples.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a layer time came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The robust time of the layer's own samples, visit by visit, the speeds of visits taken out (docs/method.md §4).
    Robust,
    /// The median of the layer's own samples, whatever visit they are of.
    Median,
    /// The papers' differencing of prefix and suffix medians (mlmp §4.2.2).
    Differencing,
    /// Least squares over all measured segments (docs/method.md §4).
    #[serde(rename = "least-squares")]
    Graph,
    /// The same, the costs of cuts divided into moving in and moving out as probes say instead of into halves
    /// (docs/method.md §10).
    #[serde(rename = "least-squares-probed")]
    Probed,
}

impl Method {
    /// Whether times come from least squares over all measured segments, however cuts divide.
    pub fn is_least_squares(self) -> bool {
        matches!(self, Method::Graph | Method::Probed)
    }

    /// The word in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::Robust => "robust",
            Method::Median => "median",
            Method::Differencing => "differencing",
            Method::Graph => "least-squares",
            Method::Probed => "least-squares-probed",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
