//! Operators whose operations were counted by hand.

use std::collections::HashMap;

use super::*;
use crate::tensor::ElementType;

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        i: value,
        ..AttributeProto::default()
    }
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

fn counted(
    op_type: &str,
    inputs: &[&[u64]],
    output: &[u64],
    attributes: Vec<AttributeProto>,
    opset: i64,
) -> (u64, u64) {
    let spec = |name: String, shape: &[u64]| {
        (
            name.clone(),
            TensorSpec {
                name,
                element: ElementType::F32,
                shape: shape.to_vec(),
            },
        )
    };
    let mut specs: HashMap<String, TensorSpec> = HashMap::from([spec("y".into(), output)]);
    specs.extend(
        inputs
            .iter()
            .enumerate()
            .map(|(i, shape)| spec(format!("x{i}"), shape)),
    );
    let node = NodeProto {
        op_type: op_type.into(),
        input: (0..inputs.len()).map(|index| format!("x{index}")).collect(),
        output: vec!["y".into()],
        attribute: attributes,
        ..NodeProto::default()
    };
    let Count {
        additions,
        multiplications,
    } = count(&node, opset, |name| specs.get(name));
    (additions, multiplications)
}

#[test]
fn counts_are_those_worked_out_by_hand() {
    let image: &[u64] = &[1, 8, 10, 10];
    let alpha = AttributeProto {
        name: "alpha".into(),
        f: 0.5,
        ..AttributeProto::default()
    };
    for (op_type, inputs, output, attributes, expected) in [
        // 16 maps of 8x8, each value from 8 channels of 3x3 = 72 products; a bias for each value.
        (
            "Conv",
            &[image, &[16, 8, 3, 3], &[16]][..],
            &[1, 16, 8, 8][..],
            vec![],
            (73_728, 73_728),
        ),
        (
            "Conv",
            &[image, &[16, 8, 3, 3]],
            &[1, 16, 8, 8],
            vec![],
            (1024 * 71, 1024 * 72),
        ),
        // Depthwise: 9 products.
        (
            "Conv",
            &[image, &[8, 1, 3, 3]],
            &[1, 8, 8, 8],
            vec![int("group", 8)],
            (512 * 8, 512 * 9),
        ),
        // 800 inputs go into 4 channels of 2x2 each; the 4x20x20 outputs start at their first product.
        (
            "ConvTranspose",
            &[image, &[8, 4, 2, 2]],
            &[1, 4, 20, 20],
            vec![],
            (12_800 - 1600, 12_800),
        ),
        (
            "Gemm",
            &[&[1, 100], &[100, 10], &[10]],
            &[1, 10],
            vec![],
            (1000, 1000),
        ),
        (
            "Gemm",
            &[&[100, 2], &[100, 10]],
            &[2, 10],
            vec![int("transA", 1), alpha],
            (1980, 2020),
        ),
        (
            "MatMul",
            &[&[3, 4, 5], &[5, 6]],
            &[3, 4, 6],
            vec![],
            (72 * 4, 72 * 5),
        ),
        (
            "MaxPool",
            &[image],
            &[1, 8, 5, 5],
            vec![ints("kernel_shape", &[2, 2])],
            (600, 0),
        ),
        (
            "AveragePool",
            &[image],
            &[1, 8, 5, 5],
            vec![ints("kernel_shape", &[2, 2])],
            (600, 200),
        ),
        (
            "GlobalAveragePool",
            &[image],
            &[1, 8, 1, 1],
            vec![],
            (792, 8),
        ),
        ("LRN", &[image], image, vec![int("size", 5)], (4000, 3200)),
        ("BatchNormalization", &[image], image, vec![], (800, 800)),
        ("Relu", &[image], image, vec![], (800, 0)),
        ("Add", &[image, image], image, vec![], (800, 0)),
        ("Clip", &[image, &[], &[]], image, vec![], (1600, 0)),
        ("Sum", &[image, image, image], image, vec![], (1600, 0)),
        ("ReduceMean", &[image], &[1, 8], vec![], (792, 8)),
        // 100 places, each a softmax of 8 channels: 7 + 8 + 7 additions, 8 + 8 multiplications.
        (
            "Softmax",
            &[image],
            image,
            vec![int("axis", 1)],
            (2200, 1600),
        ),
        ("Concat", &[image, image], &[1, 16, 10, 10], vec![], (0, 0)),
    ] {
        assert_eq!(
            counted(op_type, inputs, output, attributes, 17),
            expected,
            "{op_type}"
        );
    }
}

#[test]
fn products_written_as_equations_count_as_those_of_matrices() {
    let equation = |text: &str| AttributeProto {
        name: "equation".into(),
        s: text.into(),
        ..AttributeProto::default()
    };
    let einsum = |text: &str, inputs: &[&[u64]], output: &[u64]| {
        counted("Einsum", inputs, output, vec![equation(text)], 17)
    };
    let (a, b, y): (&[u64], &[u64], &[u64]) = (&[3, 4, 5], &[5, 6], &[3, 4, 6]);
    let as_matrices = counted("MatMul", &[a, b], y, vec![], 17);
    assert_eq!(einsum("bij,jk->bik", &[a, b], y), as_matrices);
    // An outer product adds nothing, turning axes computes nothing, and a sum multiplies nothing.
    assert_eq!(einsum("i,j->ij", &[&[3], &[4]], &[3, 4]), (0, 12));
    assert_eq!(einsum("ij->ji", &[&[3, 4]], &[4, 3]), (0, 0));
    assert_eq!(einsum("ij->i", &[&[3, 4]], &[3]), (9, 0));
}

#[test]
fn softmax_flattened_before_operator_set_13() {
    // One group of 800: 799 + 800 + 799 additions.
    let image: &[u64] = &[1, 8, 10, 10];
    assert_eq!(
        counted("Softmax", &[image], image, vec![], 12),
        (2398, 1600)
    );
}

#[test]
fn absurd_shapes_saturate() {
    let huge: &[u64] = &[u64::MAX, u64::MAX];
    assert_eq!(
        counted("MatMul", &[huge, huge], huge, vec![], 17),
        (u64::MAX, u64::MAX)
    );
}

#[test]
fn attention_counts_as_what_it_consists_of() {
    // One head of 4 queries and 6 keys, of width 8: 24 scores of 8 products and a scale, their softmax, 32 sums of 6 products.
    let (q, k): (&[u64], &[u64]) = (&[1, 1, 4, 8], &[1, 1, 6, 8]);
    let (additions, multiplications) =
        (24 * 7 + (3 * 24 - 2 * 4) + 32 * 5, 24 * 9 + 2 * 24 + 32 * 6);
    let alone = counted("Attention", &[q, k, k], q, vec![], 23);
    assert_eq!(alone, (additions, multiplications));
    let masked = counted(
        "Attention",
        &[q, k, k, &[4, 6]],
        q,
        vec![int("is_causal", 1)],
        23,
    );
    assert_eq!(masked, (additions + 48, multiplications));
    // Two heads side by side in three axes: the same scores twice.
    let (q, k): (&[u64], &[u64]) = (&[1, 4, 16], &[1, 6, 16]);
    let heads = vec![int("q_num_heads", 2), int("kv_num_heads", 2)];
    let side_by_side = counted("Attention", &[q, k, k], q, heads, 23);
    assert_eq!(side_by_side, (2 * additions, 2 * multiplications));
    // Three keys of earlier steps beside six: 36 scores.
    let (q, k, past): (&[u64], &[u64], &[u64]) = (&[1, 1, 4, 8], &[1, 1, 6, 8], &[1, 1, 3, 8]);
    let none: &[u64] = &[4, 9];
    let with_past = counted("Attention", &[q, k, k, none, past, past], q, vec![], 23);
    let additions = 36 * 7 + 36 + (3 * 36 - 2 * 4) + 32 * 8;
    assert_eq!(with_past, (additions, 36 * 9 + 2 * 36 + 32 * 9));
    let softcap = AttributeProto {
        name: "softcap".into(),
        f: 2.0,
        ..AttributeProto::default()
    };
    let capped = counted("Attention", &[q, k, k], q, vec![softcap], 23);
    assert_eq!(
        capped,
        (
            24 * 7 + (3 * 24 - 2 * 4) + 32 * 5,
            24 * 12 + 2 * 24 + 32 * 6
        )
    );
}
