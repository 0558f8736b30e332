//! A figure as a table, and what a paper says of it.

use std::fmt::Write as _;

use super::table::markdown;

/// What a paper says of a figure, and whether it is so here.
struct Claim {
    says: String,
    holds: bool,
    /// The numbers that say so.
    found: String,
}

/// A figure.
pub struct Figure {
    title: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    claims: Vec<Claim>,
    note: String,
}

/// A line of a figure: a value for each place across, nothing where there is none.
#[derive(Clone)]
pub struct Line {
    /// What its column is called.
    pub name: &'static str,
    /// The values, from left to right.
    pub values: Vec<Option<f64>>,
}

impl Line {
    /// The value at a place; where there is none, what is worth nothing.
    pub fn at(&self, place: usize) -> f64 {
        self.values[place].unwrap_or(0.0)
    }

    /// The value at the left end.
    pub fn first(&self) -> f64 {
        self.at(0)
    }

    /// The value at the right end.
    pub fn last(&self) -> f64 {
        self.at(self.values.len() - 1)
    }

    /// By how much it is lower at the right end than at the left one.
    pub fn drop(&self) -> f64 {
        self.first() - self.last()
    }

    /// Whether it never rises by more than `by`.
    pub fn never_rises(&self, by: f64) -> bool {
        (1..self.values.len()).all(|place| self.at(place) <= self.at(place - 1) + by)
    }

    /// Whether it is nowhere lower than `other`, by more than rounding.
    pub fn is_above(&self, other: &Line) -> bool {
        (0..self.values.len()).all(|place| self.at(place) >= other.at(place) - 1e-9)
    }

    /// The least of its distances above `other`.
    pub fn least_above(&self, other: &Line) -> f64 {
        let above = (0..self.values.len()).map(|place| self.at(place) - other.at(place));
        above.fold(f64::INFINITY, f64::min)
    }
}

impl Figure {
    /// A table of these columns, without statements yet.
    pub fn table(title: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Figure {
        Figure {
            title: title.to_owned(),
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            rows,
            claims: Vec::new(),
            note: String::new(),
        }
    }

    /// A figure of lines over `across`, with so many digits.
    pub fn lines(title: &str, across: &str, xs: &[f64], lines: &[Line], digits: usize) -> Figure {
        let heads: Vec<&str> = [across]
            .into_iter()
            .chain(lines.iter().map(|line| line.name))
            .collect();
        let row = |(place, x): (usize, &f64)| {
            let values = lines.iter().map(|line| match line.values[place] {
                Some(value) => format!("{value:.digits$}"),
                None => "none".to_owned(),
            });
            [x.to_string()].into_iter().chain(values).collect()
        };
        Figure::table(title, &heads, xs.iter().enumerate().map(row).collect())
    }

    /// What is said above the table.
    pub fn note(mut self, note: impl Into<String>) -> Figure {
        self.note = note.into();
        self
    }

    /// What the paper says of the figure, whether that is so here, and the numbers that say so.
    pub fn claim(mut self, says: &str, holds: bool, found: impl Into<String>) -> Figure {
        self.claims.push(Claim {
            says: says.to_owned(),
            holds,
            found: found.into(),
        });
        self
    }
}

/// The page of these figures.
pub fn page(title: &str, intro: &str, figures: &[Figure]) -> String {
    let claims = || figures.iter().flat_map(|figure| &figure.claims);
    let held = claims().filter(|claim| claim.holds).count();
    let mut page = format!(
        "# {title}\n\n{intro}\n\n{held} of {} statements hold.\n",
        claims().count()
    );
    for figure in figures {
        let heads: Vec<&str> = figure.heads.iter().map(String::as_str).collect();
        write!(page, "\n## {}\n\n", figure.title).expect("in memory");
        if !figure.note.is_empty() {
            write!(page, "{}\n\n", figure.note).expect("in memory");
        }
        page.push_str(&markdown(&heads, &figure.rows));
        if !figure.claims.is_empty() {
            page.push_str("\n| the paper says | here | found |\n| --- | --- | --- |\n");
        }
        for Claim { says, holds, found } in &figure.claims {
            let here = if *holds { "yes" } else { "**no**" };
            writeln!(page, "| {says} | {here} | {found} |").expect("in memory");
        }
    }
    page
}
