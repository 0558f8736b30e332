//! Orders that follow from what the processors can run, which is asked first.

use layerlab_profiles::document::Unsupported;
use layerlab_protocol::{Order, Work};

use super::{News, Orders, PlannerError};

/// The number of the order that asks: orders that measure are numbered from 1 whatever was asked before them.
pub const SURVEY: u32 = 0;

/// The order, like `template`, that asks which layers each of `processors` cannot run.
pub fn survey(template: &Order, processors: Vec<String>) -> Order {
    Order {
        number: SURVEY,
        work: Work::Survey { processors },
        ..template.clone()
    }
}

/// What makes orders of the answers to a survey.
type Plan<'a> =
    Box<dyn FnOnce(&[Unsupported]) -> Result<Box<dyn Orders + 'a>, PlannerError> + Send + 'a>;

/// A survey, and the orders that are planned once it is answered.
pub struct Surveyed<'a> {
    survey: Option<Order>,
    answers: Vec<Unsupported>,
    plan: Option<Plan<'a>>,
    planned: Option<Box<dyn Orders + 'a>>,
}

impl<'a> Surveyed<'a> {
    /// Asks by `survey` and goes on with what `plan` makes of the answers.
    pub fn new<O: Orders + 'a>(
        survey: Order,
        plan: impl FnOnce(&[Unsupported]) -> Result<O, PlannerError> + Send + 'a,
    ) -> Surveyed<'a> {
        Surveyed {
            survey: Some(survey),
            answers: Vec::new(),
            plan: Some(Box::new(|answers| Ok(Box::new(plan(answers)?)))),
            planned: None,
        }
    }
}

impl Orders for Surveyed<'_> {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        if let Some(survey) = self.survey.take() {
            return Ok(vec![survey]);
        }
        let mut orders = Vec::new();
        for event in news {
            match (&mut self.planned, event) {
                (Some(planned), event) => {
                    orders.extend(planned.next(std::slice::from_ref(event))?);
                }
                (None, News::Unsupported(unsupported)) => self.answers.push(unsupported.clone()),
                (None, News::Finished(SURVEY)) => {
                    if let Some(plan) = self.plan.take() {
                        let mut planned = plan(&self.answers)?;
                        orders.extend(planned.next(&[])?);
                        self.planned = Some(planned);
                    }
                }
                (None, _) => {}
            }
        }
        Ok(orders)
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::Segment;

    use super::super::Fixed;
    use super::super::tests::{begun, template, told};
    use super::*;

    fn lacking(layer: u32) -> Unsupported {
        Unsupported {
            processor: "npu".to_owned(),
            segment: Segment::single(layer),
            reason: "it has no Elu".to_owned(),
            needed: None,
        }
    }

    #[test]
    fn what_is_measured_follows_from_what_was_answered() {
        let survey = survey(&template(), vec!["npu".to_owned()]);
        let mut orders = Surveyed::new(survey.clone(), |answers| {
            assert_eq!(answers, [lacking(2), lacking(5)]);
            Ok(Fixed::new(vec![Order {
                number: 1,
                ..template()
            }]))
        });
        assert_eq!(begun(&mut orders), [survey]);
        for layer in [2, 5] {
            assert_eq!(told(&mut orders, News::Unsupported(lacking(layer))), []);
        }
        let planned = told(&mut orders, News::Finished(SURVEY));
        assert_eq!(planned.iter().map(|o| o.number).collect::<Vec<_>>(), [1]);
        // What is heard later is about what is measured.
        assert_eq!(told(&mut orders, News::Unsupported(lacking(3))), []);
        assert_eq!(told(&mut orders, News::Finished(1)), []);
    }
}
