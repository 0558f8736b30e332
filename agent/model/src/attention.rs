//! `Attention` (operator set 23) as the ONNX standard defines it, in products, sums and a softmax of tract's.
//!
//! tract's own reader of it, which is a feature of its crate, is not used for three reasons: it does not say what shapes come
//! out; it lets a query see the keys before its own place alone, also where keys from earlier steps come before them (the
//! standard has key `j` seen by query `i` where `j <= i` plus their number); and what it becomes when optimised computes heads
//! on as many threads as the machine has cores, however many the processor that is timed is said to have.

use tract_onnx::model::{OnnxOpRegister, ParsingContext};
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::{AxisOp, DimLike as _, TDim, TypedOp, tensor0};
use tract_onnx::tract_core::ops::array::TypedConcat;
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::cast::Cast;
use tract_onnx::tract_core::ops::change_axes::wire_with_rank_broadcast;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::logic::{Iff, comp_gt};
use tract_onnx::tract_core::ops::math::{add, div, mul, tanh};
use tract_onnx::tract_core::ops::nn::{Reduce, Reducer, Softmax, SoftmaxKind};
use tract_onnx::tract_hir::infer::InferenceOp;
use tract_onnx::tract_hir::internal::{
    Expansion, InferenceResult, Solver, StaticName, TensorProxy, expand,
};

/// What the standard calls it.
pub(crate) const ATTENTION: &str = "Attention";

/// The attributes that are read; any other could change the answer.
const ATTRIBUTES: [&str; 7] = [
    "is_causal",
    "kv_num_heads",
    "q_num_heads",
    "qk_matmul_output_mode",
    "scale",
    "softcap",
    "softmax_precision",
];

/// Has `operators` read `Attention`.
pub(crate) fn register(operators: &mut OnnxOpRegister) {
    operators.insert(ATTENTION, read);
}

fn read(_: &ParsingContext, node: &NodeProto) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let has = |names: &[String], place: usize| names.get(place).is_some_and(|it| !it.is_empty());
    let mut attributes = node.attribute.iter();
    if let Some(other) = attributes.find(|it| !ATTRIBUTES.contains(&it.name.as_str())) {
        return refused(&format!("the attribute `{}`", other.name));
    }
    if has(&node.input, 6) {
        return refused("lengths of padded keys (`nonpad_kv_seqlen`)");
    }
    if has(&node.output, 3) {
        return refused("scores as an output (`qk_matmul_output`)");
    }
    let past = [4, 5].map(|place| has(&node.input, place));
    let present = [1, 2].map(|place| has(&node.output, place));
    if past[0] != past[1] || present[0] != present[1] {
        return refused("one of keys and values from earlier steps without the other");
    }
    let attribute = |name: &str| node.attribute.iter().find(|it| it.name == name);
    let int = |name: &str| attribute(name).map(|it| it.i);
    let float = |name: &str| attribute(name).map(|it| it.f);
    let heads = |name: &str| int(name).and_then(|heads| usize::try_from(heads).ok());
    let heads = match (heads("q_num_heads"), heads("kv_num_heads")) {
        (Some(query), Some(key)) if query > 0 && key > 0 => Some((query, key)),
        _ => None,
    };
    let softmax = match int("softmax_precision") {
        None => None,
        Some(1) => Some(DatumType::F32),
        Some(10) => Some(DatumType::F16),
        Some(11) => Some(DatumType::F64),
        Some(_) => return refused("a softmax in numbers other than floats of 16, 32 or 64 bits"),
    };
    let attention = Attention {
        heads,
        softmax,
        scale: float("scale"),
        softcap: float("softcap").filter(|&cap| cap != 0.0),
        is_causal: int("is_causal").is_some_and(|it| it != 0),
        has_mask: has(&node.input, 3),
        has_past: past[0],
        gives_present: present[0],
    };
    Ok((expand(attention), Vec::new()))
}

fn refused<T>(what: &str) -> TractResult<T> {
    Err(TractError::msg(format!(
        "Attention with {what} is not read"
    )))
}

/// Whether two lengths are known, and not the same.
fn differ(one: &TDim, other: &TDim) -> bool {
    matches!((one.to_usize(), other.to_usize()), (Ok(one), Ok(other)) if one != other)
}

#[derive(Clone, Debug)]
struct Attention {
    /// Heads of queries, and of keys and values, where inputs are of three axes.
    heads: Option<(usize, usize)>,
    /// What numbers the softmax is computed in, if in others than those of the inputs.
    softmax: Option<DatumType>,
    scale: Option<f32>,
    softcap: Option<f32>,
    is_causal: bool,
    has_mask: bool,
    has_past: bool,
    gives_present: bool,
}

/// [batch, heads, places, width] of queries, keys and values.
struct Sizes {
    query: [TDim; 4],
    key: [TDim; 4],
    value: [TDim; 4],
    /// How many keys come from earlier steps.
    past: TDim,
}

impl Attention {
    /// The place of the first of the keys and values from earlier steps among the inputs that there are.
    fn past_at(&self) -> usize {
        3 + usize::from(self.has_mask)
    }

    /// The sizes of what enters, with an axis for heads.
    fn sizes<S: AsRef<[TDim]>>(&self, inputs: &[S]) -> TractResult<Sizes> {
        let axes = inputs[0].as_ref().len();
        if inputs[..3].iter().any(|input| input.as_ref().len() != axes) {
            return refused("queries, keys and values of different numbers of axes");
        }
        let split = |place: usize, heads: fn((usize, usize)) -> usize| {
            let shape = inputs[place].as_ref();
            match (shape, self.heads) {
                ([batch, places, width], Some(both)) => {
                    let heads = heads(both);
                    if width.to_i64().is_ok_and(|width| width % heads as i64 != 0) {
                        return refused("heads that do not divide its inputs' width");
                    }
                    let width = width.clone() / heads;
                    Ok([batch.clone(), heads.to_dim(), places.clone(), width])
                }
                ([batch, heads, places, width], _) => {
                    Ok([batch, heads, places, width].map(TDim::clone))
                }
                _ => refused("inputs that have neither four axes nor three and a number of heads"),
            }
        };
        let (key, value) = (split(1, |(_, key)| key)?, split(2, |(_, key)| key)?);
        let sizes = Sizes {
            query: split(0, |(query, _)| query)?,
            past: match self.has_past {
                true => self.past(inputs, &key, &value)?,
                false => 0.to_dim(),
            },
            key,
            value,
        };
        self.check(&sizes, inputs)?;
        Ok(sizes)
    }

    /// How many keys and values come from earlier steps, which are like those of this step otherwise.
    fn past<S: AsRef<[TDim]>>(
        &self,
        inputs: &[S],
        key: &[TDim; 4],
        value: &[TDim; 4],
    ) -> TractResult<TDim> {
        let at = self.past_at();
        let (keys, values) = (inputs[at].as_ref(), inputs[at + 1].as_ref());
        let like = |past: &[TDim], now: &[TDim; 4]| {
            past.len() == 4
                && ![0, 1, 3]
                    .iter()
                    .any(|&axis| differ(&past[axis], &now[axis]))
        };
        if !like(keys, key) || !like(values, value) || differ(&keys[2], &values[2]) {
            return refused(
                "keys and values from earlier steps that are unlike those of this step",
            );
        }
        Ok(keys[2].clone())
    }

    /// What tract would widen in silence, or stop at, is refused.
    fn check<S: AsRef<[TDim]>>(&self, sizes: &Sizes, inputs: &[S]) -> TractResult<()> {
        let Sizes {
            query,
            key,
            value,
            past,
        } = sizes;
        if let (Ok(heads), Ok(shared)) = (query[1].to_usize(), key[1].to_usize())
            && (shared == 0 || heads % shared != 0)
        {
            return refused("heads of queries that are no multiple of those of keys");
        }
        if differ(&query[3], &key[3]) {
            return refused("queries of another width than its keys");
        }
        if differ(&query[0], &key[0]) || (0..3).any(|axis| differ(&key[axis], &value[axis])) {
            return refused("queries, keys and values that do not belong together");
        }
        if self.has_mask {
            let mask = inputs[3].as_ref();
            let all_keys = key[2].clone() + past;
            if mask.len() > 4 || mask.last().is_none_or(|last| differ(last, &all_keys)) {
                return refused("a mask that does not have a number for each key");
            }
        }
        Ok(())
    }

    /// The shapes of the outputs.
    fn given<S: AsRef<[TDim]>>(&self, inputs: &[S]) -> TractResult<Vec<TVec<TDim>>> {
        let Sizes {
            query: [batch, heads, places, _],
            key,
            value,
            past,
        } = self.sizes(inputs)?;
        let width = value[3].clone();
        let mut shapes = vec![match inputs[0].as_ref().len() {
            3 => tvec![batch, places, heads * width],
            _ => tvec![batch, heads, places, width],
        }];
        if self.gives_present {
            shapes.extend([key, value].map(|[batch, heads, places, width]| {
                tvec![batch, heads, places + past.clone(), width]
            }));
        }
        Ok(shapes)
    }
}

impl Expansion for Attention {
    fn name(&self) -> StaticName {
        ATTENTION.into()
    }

    fn nboutputs(&self) -> TractResult<usize> {
        Ok(if self.gives_present { 3 } else { 1 })
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        for (input, output) in inputs.iter().zip(outputs) {
            solver.equals(&input.datum_type, &output.datum_type)?;
        }
        let shapes = inputs.iter().map(|input| &input.shape);
        solver.given_all(shapes, move |solver, shapes: Vec<TVec<TDim>>| {
            for (output, shape) in outputs.iter().zip(self.given(&shapes)?) {
                solver.equals(&output.shape, shape)?;
            }
            Ok(())
        })
    }

    fn wire(
        &self,
        prefix: &str,
        target: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let mut wiring = Wiring {
            prefix,
            target,
            steps: 0,
        };
        wiring.attention(self, inputs)
    }
}

/// Builds what an `Attention` becomes.
struct Wiring<'a> {
    prefix: &'a str,
    target: &'a mut TypedModel,
    /// How many nodes there are, of which each has a name of its own.
    steps: usize,
}

impl Wiring<'_> {
    fn attention(
        &mut self,
        attention: &Attention,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let shapes = inputs.iter().map(|&input| self.shape(input));
        let shapes = shapes.collect::<TractResult<Vec<_>>>()?;
        let Sizes {
            query, key, past, ..
        } = attention.sizes(&shapes)?;
        let element = self.target.outlet_fact(inputs[0])?.datum_type;
        let has_three_axes = shapes[0].len() == 3;
        let [mut q, mut k, mut v] = [inputs[0], inputs[1], inputs[2]];
        if let (true, Some((queries, keys))) = (has_three_axes, attention.heads) {
            q = self.split(q, queries)?;
            k = self.split(k, keys)?;
            v = self.split(v, keys)?;
        }
        if attention.has_past {
            let at = attention.past_at();
            k = self.step(TypedConcat { axis: 2 }, &[inputs[at], k])?;
            v = self.step(TypedConcat { axis: 2 }, &[inputs[at + 1], v])?;
        }
        // Queries of heads that share keys and values are an axis of their own: [batch, heads of keys, shared by, places, width].
        let (heads, keys) = (query[1].to_usize()?, key[1].to_usize()?);
        let groups = tvec![keys.to_dim(), (heads / keys).to_dim()];
        let grouped = AxisOp::Reshape(1, tvec![heads.to_dim()], groups.clone());
        let scale = attention.scale;
        let scale = scale.map_or_else(
            || Ok(1.0 / (query[3].to_usize()? as f32).sqrt()),
            Ok::<_, TractError>,
        )?;
        q = self.step(grouped, &[q])?;
        // Before the product, which could be too large for 16 bits without.
        q = self.with(mul(), q, scale, element)?;
        let mut scores = self.product("bhgqd,bhkd->bhgqk", element, &[q, k])?;
        if let Some(cap) = attention.softcap {
            scores = self.with(div(), scores, cap, element)?;
            scores = self.step(tanh(), &[scores])?;
            scores = self.with(mul(), scores, cap, element)?;
        }
        let mask = match attention.has_mask {
            true => Some(self.mask(inputs[3], element, &groups)?),
            false => None,
        };
        // A single key is seen by all queries.
        let is_hidden = key[2].to_usize()? > 1;
        let causal = match attention.is_causal && is_hidden {
            true => Some(self.causal(&query[2], &key[2], &past, element)?),
            false => None,
        };
        let bias = match (mask, causal) {
            (Some(mask), Some(causal)) => Some(self.joined(add(), &[mask, causal])?),
            (one, other) => one.or(other),
        };
        if let Some(bias) = bias {
            scores = self.joined(add(), &[scores, bias])?;
        }
        let precision = attention.softmax.unwrap_or(element);
        if precision != element {
            scores = self.step(Cast::new(precision), &[scores])?;
        }
        let softmax = Softmax {
            axes: tvec![4],
            quant_output_dt: None,
            kind: SoftmaxKind::Softmax,
        };
        let mut weights = self.step(softmax, &[scores])?;
        if precision != element {
            weights = self.step(Cast::new(element), &[weights])?;
        }
        if let (Some(_), Some(bias)) = (mask, bias) {
            weights = self.without_empty_rows(weights, bias, element)?;
        }
        let mut y = self.product("bhgqk,bhkd->bhgqd", element, &[weights, v])?;
        y = self.step(AxisOp::Reshape(1, groups, tvec![heads.to_dim()]), &[y])?;
        if has_three_axes {
            y = self.step(AxisOp::Move(1, 2), &[y])?;
            let width = self.shape(y)?[3].clone();
            let merged = AxisOp::Reshape(
                2,
                tvec![heads.to_dim(), width.clone()],
                tvec![heads.to_dim() * width],
            );
            y = self.step(merged, &[y])?;
        }
        Ok(match attention.gives_present {
            true => tvec![y, k, v],
            false => tvec![y],
        })
    }

    /// [batch, places, heads x width] as [batch, heads, places, width].
    fn split(&mut self, input: OutletId, heads: usize) -> TractResult<OutletId> {
        let width = self.shape(input)?[2].clone();
        let axes = tvec![heads.to_dim(), width.clone() / heads];
        let split = self.step(AxisOp::Reshape(2, tvec![width], axes), &[input])?;
        self.step(AxisOp::Move(2, 1), &[split])
    }

    /// What the input adds to scores, with as many axes as these: nothing or minus infinity where it is of truth values.
    fn mask(
        &mut self,
        input: OutletId,
        element: DatumType,
        groups: &TVec<TDim>,
    ) -> TractResult<OutletId> {
        let mut mask = input;
        while self.shape(mask)?.len() < 4 {
            mask = self.step(AxisOp::Add(0), &[mask])?;
        }
        mask = match self.shape(mask)?[1].to_usize()? {
            1 => self.step(AxisOp::Add(2), &[mask])?,
            heads => {
                let grouped = AxisOp::Reshape(1, tvec![heads.to_dim()], groups.clone());
                self.step(grouped, &[mask])?
            }
        };
        if self.target.outlet_fact(mask)?.datum_type != bool::datum_type() {
            return self.step(Cast::new(element), &[mask]);
        }
        let seen = self.constant(0.0, element)?;
        let unseen = self.constant(f32::NEG_INFINITY, element)?;
        self.joined(Iff, &[mask, seen, unseen])
    }

    /// Minus infinity where a key comes after the query's own place.
    fn causal(
        &mut self,
        queries: &TDim,
        keys: &TDim,
        past: &TDim,
        element: DatumType,
    ) -> TractResult<OutletId> {
        let [queries, keys, past] = [queries.to_usize()?, keys.to_usize()?, past.to_usize()?];
        let keys = past + keys;
        let biases = (0..queries).flat_map(|query| {
            (0..keys).map(move |key| match key <= query + past {
                true => 0.0,
                false => f32::NEG_INFINITY,
            })
        });
        let biases: Vec<f32> = biases.collect();
        let bias = Tensor::from_shape(&[1, 1, 1, queries, keys], &biases)?;
        let bias = bias.cast_to_dt(element)?.into_owned();
        self.named_constant(bias)
    }

    /// A query that sees no key is given nothing, where a softmax of minus infinities gives no numbers.
    fn without_empty_rows(
        &mut self,
        weights: OutletId,
        bias: OutletId,
        element: DatumType,
    ) -> TractResult<OutletId> {
        let lowest = self.constant(f32::NEG_INFINITY, element)?;
        let is_seen = self.joined(TypedBinOp(comp_gt(), None), &[bias, lowest])?;
        let any = Reduce {
            axes: tvec![4],
            reducer: Reducer::Any,
        };
        let sees_any = self.step(any, &[is_seen])?;
        let nothing = self.constant(0.0, element)?;
        self.joined(Iff, &[sees_any, weights, nothing])
    }

    fn product(
        &mut self,
        equation: &str,
        element: DatumType,
        inputs: &[OutletId],
    ) -> TractResult<OutletId> {
        self.step(EinSum::new(equation.parse()?, element), inputs)
    }

    /// `input` and a number, put together by `operator`.
    fn with(
        &mut self,
        operator: impl Into<Box<dyn TypedOp>>,
        input: OutletId,
        number: f32,
        element: DatumType,
    ) -> TractResult<OutletId> {
        let number = self.constant(number, element)?;
        self.joined(operator, &[input, number])
    }

    fn constant(&mut self, number: f32, element: DatumType) -> TractResult<OutletId> {
        let tensor = tensor0(number).cast_to_dt(element)?.into_owned();
        self.named_constant(tensor)
    }

    fn named_constant(&mut self, tensor: Tensor) -> TractResult<OutletId> {
        let name = self.name();
        self.target.add_const(name, tensor)
    }

    /// A step whose inputs are given as many axes as the one that has most.
    fn joined(
        &mut self,
        operator: impl Into<Box<dyn TypedOp>>,
        inputs: &[OutletId],
    ) -> TractResult<OutletId> {
        let name = self.name();
        Ok(wire_with_rank_broadcast(name, self.target, operator, inputs)?[0])
    }

    fn step(
        &mut self,
        operator: impl Into<Box<dyn TypedOp>>,
        inputs: &[OutletId],
    ) -> TractResult<OutletId> {
        let name = self.name();
        Ok(self.target.wire_node(name, operator, inputs)?[0])
    }

    fn name(&mut self) -> String {
        self.steps += 1;
        format!("{}.{}", self.prefix, self.steps)
    }

    fn shape(&self, outlet: OutletId) -> TractResult<TVec<TDim>> {
        Ok(self.target.outlet_fact(outlet)?.shape.to_tvec())
    }
}
