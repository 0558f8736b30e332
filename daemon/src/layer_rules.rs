//! Rules that say which nodes of a model are one layer together: regular expressions on the nodes' names, in a TOML file.

use std::path::{Path, PathBuf};

use layerlab_lab::toml_file::{self, TomlFileError};
use layerlab_model::{NamedLayer, Network};
use regex::Regex;
use serde::Deserialize;

/// The rules of a file, of which the first that matches a node's name decides.
pub(super) struct LayerRules {
    path: PathBuf,
    rules: Vec<LayerRule>,
}

struct LayerRule {
    nodes: Regex,
    name: String,
}

/// What is wrong with a file of rules.
#[derive(Debug, thiserror::Error)]
pub(super) enum LayerRulesError {
    #[error(transparent)]
    File(#[from] TomlFileError),
    #[error("{}: {problem}; write `[[layer]]` with `nodes` and `name` for each rule", path.display())]
    Form { path: PathBuf, problem: String },
    #[error("{}: `nodes` of rule {number} is no regular expression: {problem}", path.display())]
    Expression {
        path: PathBuf,
        number: usize,
        problem: String,
    },
    #[error(
        "{}: rule {number} (`{expression}`) decides for no node of the model, whose nodes are called `{node}` \
         and the like: correct `nodes`, or leave the rule out",
        path.display()
    )]
    Unmatched {
        path: PathBuf,
        number: usize,
        expression: String,
        node: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    layer: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    nodes: String,
    name: String,
}

impl LayerRules {
    pub(super) fn read(path: &Path) -> Result<LayerRules, LayerRulesError> {
        let table = toml_file::read("file of layer rules", path)?;
        let file: RulesFile = table.try_into().map_err(|error: toml::de::Error| {
            let problem = error.message().trim().to_owned();
            LayerRulesError::Form {
                path: path.to_owned(),
                problem,
            }
        })?;
        if file.layer.is_empty() {
            return Err(LayerRulesError::Form {
                path: path.to_owned(),
                problem: "there is no rule".to_owned(),
            });
        }
        let rules = file.layer.into_iter().zip(1..).map(|(entry, number)| {
            let nodes = Regex::new(&entry.nodes).map_err(|error| LayerRulesError::Expression {
                path: path.to_owned(),
                number,
                // The parser draws the place of the mistake on lines of its own; its last line says what it is.
                problem: error
                    .to_string()
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .to_owned(),
            })?;
            Ok(LayerRule {
                nodes,
                name: entry.name,
            })
        });
        Ok(LayerRules {
            path: path.to_owned(),
            rules: rules.collect::<Result<_, LayerRulesError>>()?,
        })
    }

    /// The layers that the rules make of a network's nodes: those that get the same name are one.
    pub(super) fn apply(&self, network: &Network) -> Result<Vec<NamedLayer>, LayerRulesError> {
        let operators = (1..=network.layer_count()).flat_map(|layer| network.operators(layer));
        let nodes: Vec<&str> = operators.map(|operator| operator.name.as_str()).collect();
        let mut layers: Vec<NamedLayer> = Vec::new();
        let mut is_matched = vec![false; self.rules.len()];
        for node in &nodes {
            let rules = self.rules.iter().enumerate();
            let mut matching =
                rules.filter_map(|(place, rule)| Some((place, rule, rule.nodes.captures(node)?)));
            let Some((place, rule, captures)) = matching.next() else {
                continue;
            };
            is_matched[place] = true;
            let mut name = String::new();
            captures.expand(&rule.name, &mut name);
            match layers.iter_mut().find(|layer| layer.name == name) {
                Some(layer) => layer.nodes.push((*node).to_owned()),
                None => layers.push(NamedLayer {
                    name,
                    nodes: vec![(*node).to_owned()],
                }),
            }
        }
        match is_matched.iter().position(|is_matched| !is_matched) {
            None => Ok(layers),
            Some(place) => Err(LayerRulesError::Unmatched {
                path: self.path.clone(),
                number: place + 1,
                expression: self.rules[place].nodes.to_string(),
                node: nodes.first().copied().unwrap_or_default().to_owned(),
            }),
        }
    }
}
