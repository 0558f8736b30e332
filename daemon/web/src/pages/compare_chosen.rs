//! Which profiles are compared, as a form or a link names them: `one` by the number of its run, and each `other`. A form whose
//! boxes are all alike sends no `one`: then it is the first other.

use axum::http::StatusCode;
use layerlab_lab::record::RunNumber;

use crate::problem::Problem;

/// So many others at most are compared with one: more columns and colours nobody tells apart.
pub(super) const MOST_OTHERS: usize = 5;

/// Which profiles, by their runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChosenProfiles {
    /// What the others are compared with.
    pub(super) one: RunNumber,
    /// At least one other.
    pub(super) others: Vec<RunNumber>,
    /// Whether numbers that do not differ are shown as well.
    pub(super) shows_all: bool,
    /// Which page of them, from 1.
    pub(super) page: usize,
}

impl ChosenProfiles {
    /// Those that a query names.
    pub(super) fn of(query: &[(String, String)]) -> Result<ChosenProfiles, Problem> {
        let values = |name: &'static str| {
            let named = query.iter().filter(move |(key, _)| key == name);
            named.map(|(_, value)| value.as_str())
        };
        let runs = values("one").chain(values("other")).map(number);
        let runs: Vec<RunNumber> = runs.collect::<Result<_, Problem>>()?;
        if values("one").count() > 1 {
            return Err(refused(
                "`one` is named twice; name one profile, and each `other` that is compared with it",
            ));
        }
        let [one, others @ ..] = &runs[..] else {
            return Err(refused(
                "no profile is named; choose two or more to compare",
            ));
        };
        if others.is_empty() {
            let detail =
                format!("profile {one} is compared with nothing; choose another one as well");
            return Err(refused(&detail));
        }
        if others.len() > MOST_OTHERS {
            let detail = format!(
                "{} profiles are too many to compare with one; choose {MOST_OTHERS} at most",
                others.len()
            );
            return Err(refused(&detail));
        }
        let mut sorted = runs.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let detail = format!("profile {} is chosen twice; choose each once", twice[0]);
            return Err(refused(&detail));
        }
        let page = values("page").next().and_then(|page| page.parse().ok());
        Ok(ChosenProfiles {
            one: *one,
            others: others.to_vec(),
            shows_all: values("all").any(|all| all == "true"),
            page: page.unwrap_or(1).max(1),
        })
    }

    /// The same comparison from its first page, of all numbers or only of those that differ.
    pub(super) fn address(&self, shows_all: bool) -> String {
        let others = self.others.iter().map(|other| format!("&other={other}"));
        let all = match shows_all {
            true => "&all=true",
            false => "",
        };
        format!(
            "/compare?one={}{}{all}",
            self.one,
            others.collect::<String>()
        )
    }

    /// The address of its pages, without their numbers.
    pub(super) fn pages(&self) -> String {
        format!("{}&page=", self.address(self.shows_all))
    }

    /// The address of a comparison of the same profiles, all with one of the others.
    pub(super) fn led_by(&self, one: RunNumber) -> String {
        let runs = std::iter::once(self.one).chain(self.others.iter().copied());
        let others = runs.filter(|run| *run != one).collect();
        let led = ChosenProfiles {
            one,
            others,
            ..*self
        };
        led.address(self.shows_all)
    }
}

fn number(text: &str) -> Result<RunNumber, Problem> {
    let number = text.parse();
    number.map_err(|_| refused(&format!("`{text}` is no run; write its number")))
}

fn refused(detail: &str) -> Problem {
    Problem::usage(StatusCode::BAD_REQUEST, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(query: &str) -> Result<ChosenProfiles, String> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<_> = pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        ChosenProfiles::of(&pairs).map_err(|problem| problem.told().1.to_owned())
    }

    #[test]
    fn one_to_five_others_are_compared_with_one() {
        let four = chosen("one=1&other=2&other=7&other=3&all=true&page=2").expect("it is a choice");
        assert_eq!(
            (four.one, four.others.as_slice(), four.shows_all, four.page),
            (1, &[2, 7, 3][..], true, 2)
        );
        assert_eq!(
            four.pages(),
            "/compare?one=1&other=2&other=7&other=3&all=true&page="
        );
        assert_eq!(
            four.led_by(7),
            "/compare?one=7&other=1&other=2&other=3&all=true"
        );
        assert_eq!(chosen("other=4&other=2"), chosen("one=4&other=2"));
        for (query, said) in [
            ("", "no profile is named"),
            ("one=1", "profile 1 is compared with nothing"),
            ("other=1", "profile 1 is compared with nothing"),
            ("one=1&other=2&other=1", "profile 1 is chosen twice"),
            ("one=1&one=2&other=3", "`one` is named twice"),
            (
                "one=1&other=2&other=3&other=4&other=5&other=6&other=7",
                "6 profiles are too many",
            ),
            ("one=x&other=1", "`x` is no run"),
        ] {
            let refusal = chosen(query).expect_err(query);
            assert!(refusal.contains(said), "{query}: {refusal}");
        }
    }
}
