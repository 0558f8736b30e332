//! What a field of a device file may be, and the sentence that says so.

use super::DeviceFileError;

/// What a number may be, and how to say so.
pub(super) struct Range {
    pub(super) holds: fn(f64) -> bool,
    pub(super) expected: &'static str,
}

pub(super) const ABOVE_ZERO: Range = Range {
    holds: |x| x > 0.0,
    expected: "a number above 0",
};
pub(super) const AT_LEAST_ZERO: Range = Range {
    holds: |x| x >= 0.0,
    expected: "0 or a number above 0",
};
pub(super) const AT_LEAST_ONE: Range = Range {
    holds: |x| x >= 1.0,
    expected: "1 or a number above 1",
};
pub(super) const PROBABILITY: Range = Range {
    holds: |x| (0.0..=1.0).contains(&x),
    expected: "a probability from 0 to 1",
};
/// Not 1: the last layer of a unit would otherwise cost nothing.
pub(super) const GAIN: Range = Range {
    holds: |x| (0.0..1.0).contains(&x),
    expected: "a fraction from 0 to below 1",
};
/// Not 0: a device that stands still never ends its inference.
pub(super) const SPEED: Range = Range {
    holds: |x| x > 0.0 && x <= 1.0,
    expected: "a fraction above 0, at most 1",
};
pub(super) const TEMPERATURE: Range = Range {
    holds: |x| x > -273.15,
    expected: "a temperature in degrees Celsius",
};

/// Where a field stands.
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) place: String,
}

impl Place<'_> {
    pub(super) fn missing(&self, field: &'static str, expected: &'static str) -> DeviceFileError {
        let (file, place) = (self.file.to_owned(), self.place.clone());
        DeviceFileError::Missing {
            file,
            place,
            field,
            expected,
        }
    }

    pub(super) fn senseless(
        &self,
        field: &'static str,
        value: impl ToString,
        expected: &'static str,
    ) -> DeviceFileError {
        let (file, place, value) = (self.file.to_owned(), self.place.clone(), value.to_string());
        DeviceFileError::Senseless {
            file,
            place,
            field,
            value,
            expected,
        }
    }

    pub(super) fn absent<T>(
        &self,
        field: &'static str,
        value: Option<T>,
        reason: &'static str,
    ) -> Result<(), DeviceFileError> {
        if value.is_none() {
            return Ok(());
        }
        let (file, place) = (self.file.to_owned(), self.place.clone());
        Err(DeviceFileError::Misplaced {
            file,
            place,
            field,
            reason,
        })
    }

    pub(super) fn required<T>(
        &self,
        field: &'static str,
        value: Option<T>,
        expected: &'static str,
    ) -> Result<T, DeviceFileError> {
        value.ok_or_else(|| self.missing(field, expected))
    }

    /// A number that there may be; it must be finite and within the range.
    pub(super) fn optional_number(
        &self,
        field: &'static str,
        value: Option<f64>,
        range: &Range,
    ) -> Result<Option<f64>, DeviceFileError> {
        match value {
            Some(number) if number.is_finite() && (range.holds)(number) => Ok(Some(number)),
            Some(number) => Err(self.senseless(field, number, range.expected)),
            None => Ok(None),
        }
    }

    pub(super) fn number(
        &self,
        field: &'static str,
        value: Option<f64>,
        range: &Range,
    ) -> Result<f64, DeviceFileError> {
        let number = self.optional_number(field, value, range)?;
        self.required(field, number, range.expected)
    }

    /// A whole number that there may be; it must not be negative.
    pub(super) fn optional_count(
        &self,
        field: &'static str,
        value: Option<i64>,
    ) -> Result<Option<u64>, DeviceFileError> {
        value
            .map(|count| {
                u64::try_from(count)
                    .map_err(|_| self.senseless(field, count, AT_LEAST_ZERO.expected))
            })
            .transpose()
    }

    pub(super) fn name(&self, value: Option<String>) -> Result<String, DeviceFileError> {
        let expected = "a short name in quotes";
        let name = self.required("name", value, expected)?;
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(self.senseless("name", format!("{name:?}"), expected));
        }
        Ok(name)
    }
}
