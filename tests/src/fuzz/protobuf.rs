//! Changes of one field of a protobuf message, whose enclosing fields get the lengths that fit: changed bytes alone are
//! almost always refused as cut short.
//!
//! The message's type is not known. What could be a message is taken for one.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::bytes::change_bytes;

/// Numbers at the ends of what types hold.
const NUMBERS: [u64; 10] = [
    0,
    1,
    2,
    7,
    255,
    1 << 31,
    (1 << 31) - 1,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// One field: its number and wire type, and what it holds.
#[derive(Clone, Debug, PartialEq)]
struct Field {
    tag: u64,
    value: Value,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    /// Four or eight bytes.
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// Changes a field of `message`, perhaps to one of `other`. Bytes that are no message are changed as such.
pub(super) fn change(message: &mut Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) {
    let Some(mut fields) = parsed(message) else {
        return change_bytes(message, other, random);
    };
    let count = all(&fields);
    if count == 0 {
        return change_bytes(message, other, random);
    }
    let place = random.random_range(0..count);
    // A field of this message or of the other one, to copy.
    let donor = match random.random() {
        true => parsed(other).unwrap_or_default(),
        false => fields.clone(),
    };
    let donor = match all(&donor) {
        0 => None,
        count => nth(&donor, random.random_range(0..count)).cloned(),
    };
    change_nth(&mut fields, place, donor, random);
    *message = encoded(&fields);
}

fn change_nth(
    fields: &mut Vec<Field>,
    mut place: usize,
    donor: Option<Field>,
    random: &mut ChaCha8Rng,
) {
    for index in 0..fields.len() {
        if place == 0 {
            return change_field(fields, index, donor, random);
        }
        place -= 1;
        if let Value::Message(inner) = &mut fields[index].value {
            let count = all(inner);
            if place < count {
                return change_nth(inner, place, donor, random);
            }
            place -= count;
        }
    }
}

fn change_field(
    fields: &mut Vec<Field>,
    index: usize,
    donor: Option<Field>,
    random: &mut ChaCha8Rng,
) {
    match (random.random_range(0..8), donor) {
        (0, _) => drop(fields.remove(index)),
        (1, _) => {
            let copy = fields[index].clone();
            fields.push(copy);
        }
        (2, Some(donor)) => fields.push(donor),
        // The donor's value under this field's number, as when two tensors change names.
        (3 | 4, Some(donor)) if donor.tag & 7 == fields[index].tag & 7 => {
            fields[index].value = donor.value;
        }
        _ => match &mut fields[index].value {
            Value::Number(number) => {
                *number = match random.random() {
                    true => NUMBERS[random.random_range(0..NUMBERS.len())],
                    false => random.random_range(0..20),
                }
            }
            Value::Fixed(bytes) => {
                for byte in bytes {
                    *byte = [0, 0xff, 0x7f, 0x80, random.random()][random.random_range(0..5)];
                }
            }
            Value::Bytes(bytes) => change_bytes(bytes, &[], random),
            Value::Message(inner) => {
                inner.reverse();
            }
        },
    }
}

/// How many fields there are, those of inner messages among them.
fn all(fields: &[Field]) -> usize {
    let inner = fields.iter().map(|field| match &field.value {
        Value::Message(inner) => all(inner),
        _ => 0,
    });
    fields.len() + inner.sum::<usize>()
}

fn nth(fields: &[Field], mut place: usize) -> Option<&Field> {
    for field in fields {
        if place == 0 {
            return Some(field);
        }
        place -= 1;
        if let Value::Message(inner) = &field.value {
            let count = all(inner);
            if place < count {
                return nth(inner, place);
            }
            place -= count;
        }
    }
    None
}

/// The fields of a message; `None` if the bytes are none.
fn parsed(mut rest: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let tag = number(&mut rest)?;
        let mut take = |length: usize| {
            let (taken, after) = rest.split_at_checked(length)?;
            rest = after;
            Some(taken)
        };
        let value = match tag & 7 {
            _ if tag >> 3 == 0 => return None,
            0 => Value::Number(number(&mut rest)?),
            1 => Value::Fixed(take(8)?.to_vec()),
            5 => Value::Fixed(take(4)?.to_vec()),
            2 => {
                let length = usize::try_from(number(&mut rest)?).ok()?;
                let (taken, after) = rest.split_at_checked(length)?;
                rest = after;
                match parsed(taken) {
                    Some(inner) if !inner.is_empty() => Value::Message(inner),
                    _ => Value::Bytes(taken.to_vec()),
                }
            }
            _ => return None,
        };
        fields.push(Field { tag, value });
    }
    Some(fields)
}

fn encoded(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        put(&mut bytes, field.tag);
        match &field.value {
            Value::Number(number) => put(&mut bytes, *number),
            Value::Fixed(fixed) => bytes.extend(fixed),
            Value::Bytes(inner) => {
                put(&mut bytes, inner.len() as u64);
                bytes.extend(inner);
            }
            Value::Message(inner) => {
                let inner = encoded(inner);
                put(&mut bytes, inner.len() as u64);
                bytes.extend(inner);
            }
        }
    }
    bytes
}

/// Takes a base-128 number off the front.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for index in 0..10 {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_model_is_taken_apart_and_put_together_again() {
        let model = std::fs::read(crate::file("models/variants/residual.onnx")).expect("a model");
        let fields = parsed(&model).expect("a message");
        assert!(all(&fields) > 100, "{}", all(&fields));
        assert_eq!(encoded(&fields), model);
    }

    #[test]
    fn a_changed_message_is_most_often_still_one() {
        let model = std::fs::read(crate::file("models/variants/residual.onnx")).expect("a model");
        let whole = (0..200).filter(|&seed| {
            let mut changed = model.clone();
            change(&mut changed, &model, &mut ChaCha8Rng::seed_from_u64(seed));
            changed != model && parsed(&changed).is_some()
        });
        let whole = whole.count();
        assert!(whole > 150, "{whole}");
    }
}
