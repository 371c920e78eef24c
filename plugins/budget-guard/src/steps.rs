//! Steps of a cost.

/// Where costs are told to be passed. Amounts are more than 0.
#[derive(Debug, Clone, PartialEq)]
pub enum Steps {
    /// At each multiple.
    Every(f64),
    /// At these, ascending.
    At(Vec<f64>),
}

/// What sums of decimal fractions are off by, in steps: 0.1 + 0.2 has reached 0.3.
const SLACK: f64 = 1e-9;

impl Steps {
    /// The highest step that a cost has reached.
    #[must_use]
    pub fn reached(&self, cost: f64) -> Option<f64> {
        match self {
            Self::Every(step) => {
                let count = (cost / step + SLACK).floor();
                (count >= 1.0).then_some(count * step)
            }
            Self::At(steps) => steps.iter().rev().find(|step| cost / **step + SLACK >= 1.0).copied(),
        }
    }

    /// The highest step that lies between two costs, the second reached.
    #[must_use]
    pub fn between(&self, before: f64, now: f64) -> Option<f64> {
        let reached = self.reached(now)?;
        (self.reached(before).is_none_or(|had| had < reached)).then_some(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_passed_by_what_reaches_it() {
        let every = Steps::Every(5.0);
        assert_eq!(every.between(0.0, 4.99), None);
        assert_eq!(every.between(4.99, 5.0), Some(5.0));
        assert_eq!(every.between(5.0, 9.0), None);
        assert_eq!(every.between(5.0, 23.0), Some(20.0), "of several the highest");
        let at = Steps::At(vec![1.0, 10.0]);
        assert_eq!((at.between(0.5, 2.0), at.between(2.0, 9.0), at.between(2.0, 11.0)), (Some(1.0), None, Some(10.0)));
        assert_eq!(at.between(11.0, 1000.0), None);
    }

    #[test]
    fn decimal_fractions_add_up() {
        let every = Steps::Every(0.1);
        let mut sum = 0.0;
        let mut said = 0;
        for _ in 0..50 {
            said += u32::from(every.between(sum, sum + 0.1).is_some());
            sum += 0.1;
        }
        assert_eq!(said, 50);
    }
}
