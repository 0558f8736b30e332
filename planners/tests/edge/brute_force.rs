//! Every split there is: every side of every layer, and every way to cut the layers of one side into groups. Written
//! from what a plan means, not from how one is found.

use layerlab_planners::edge::{Packing, Quantity, SplitGoal, SplitLimits};

use crate::planted::Planted;

/// Latency in ns, energy in nJ, server time in ns.
pub(crate) type Costs = [u64; 3];

/// A cost by its quantity.
pub(crate) fn of(costs: &Costs, quantity: Quantity) -> u64 {
    costs[match quantity {
        Quantity::Latency => 0,
        Quantity::Energy => 1,
        Quantity::ServerTime => 2,
    }]
}

fn plus(one: Costs, other: Costs) -> Costs {
    [0, 1, 2].map(|place| one[place] + other[place])
}

/// The costs of all splits whose layers on the server `allowed` takes: a bit for each layer, layer 1 in bit 0.
pub(crate) fn all_costs(planted: &Planted, allowed: impl Fn(u32) -> bool) -> Vec<Costs> {
    let layers = planted.network.layers();
    let groups = group_table(planted);
    let mut all = Vec::new();
    for server in (0..1_u32 << layers).filter(|&server| allowed(server)) {
        grow(&groups, server, 1, link_costs(planted, server), &mut all);
    }
    all
}

/// What crosses the link depends on the sides alone.
fn link_costs(planted: &Planted, server: u32) -> Costs {
    let is_on_server = |layer: u32| layer > 0 && server >> (layer - 1) & 1 == 1;
    let mut costs = [0; 3];
    let packings = planted.network.packings().iter();
    for (tensor, packings) in planted.network.tensors().iter().zip(packings) {
        let here = is_on_server(tensor.producer);
        let mut wanted: Vec<bool> = tensor
            .consumers
            .iter()
            .map(|&to| is_on_server(to))
            .collect();
        wanted.extend(tensor.is_result.then_some(false));
        if wanted.iter().any(|&there| there != here) {
            let bytes = tensor.bytes.as_bytes();
            let packed = packings
                .iter()
                .map(|one| packed_crossing(planted, !here, one));
            let forms = std::iter::once(crossing(planted, !here, bytes)).chain(packed);
            let soonest = forms.min_by_key(|costs| costs[0]);
            costs = plus(costs, soonest.expect("as it is, at least"));
        }
    }
    for (layer, weights) in (1..).zip(planted.network.returned_weights()) {
        if is_on_server(layer) && weights.as_bytes() > 0 {
            costs = plus(costs, crossing(planted, false, weights.as_bytes()));
        }
    }
    costs
}

/// What the phone and the server compute, beside the bytes. Energy is not planned with: what the phone draws meanwhile is left out.
fn packed_crossing(planted: &Planted, is_upload: bool, packing: &Packing) -> Costs {
    let (way, server) = match is_upload {
        true => (packing.upload, packing.upload.unpack),
        false => (packing.download, packing.download.pack),
    };
    let computing = (way.pack + way.unpack).as_nanos();
    let idle = spent(planted.idle.as_microwatts(), server.as_nanos());
    plus(
        crossing(planted, is_upload, way.bytes.as_bytes()),
        [computing, idle, server.as_nanos()],
    )
}

fn crossing(planted: &Planted, is_upload: bool, bytes: u64) -> Costs {
    let (link, radio) = (planted.link, planted.link.radio);
    let (bps, wait, slope) = match is_upload {
        true => (
            link.upload_bps,
            link.upload_wait,
            radio.upload_microwatts_per_mbps,
        ),
        false => (
            link.download_bps,
            link.download_wait,
            radio.download_microwatts_per_mbps,
        ),
    };
    let wait = match bytes < wait.large_from.as_bytes() {
        true => {
            let (all, some) = (u128::from(wait.large_from.as_bytes()), u128::from(bytes));
            let small = u128::from(wait.smallest.as_nanos()) * (all - some);
            nearest(small + u128::from(wait.large.as_nanos()) * some, all)
        }
        false => wait.large.as_nanos(),
    };
    let nanos = nearest(u128::from(bytes) * 8_000_000_000, u128::from(bps));
    let power =
        radio.base.as_microwatts() + nearest(u128::from(slope) * u128::from(bps), 1_000_000);
    [
        wait + nanos,
        spent(power, nanos) + spent(planted.idle.as_microwatts(), wait),
        0,
    ]
}

fn nearest(one: u128, other: u128) -> u64 {
    let (whole, rest) = (one / other, one % other);
    (whole + u128::from(rest >= other - other / 2 && rest > 0)) as u64
}

fn spent(microwatts: u64, nanos: u64) -> u64 {
    nearest(u128::from(microwatts) * u128::from(nanos), 1_000_000)
}

/// What groups compute, by first and last layer and side; nothing where a group cannot be.
type GroupTable = Vec<Vec<[Option<Costs>; 2]>>;

fn group_table(planted: &Planted) -> GroupTable {
    let layers = planted.network.layers() as usize;
    let mut table = vec![vec![[None; 2]; layers + 1]; layers + 1];
    for group in planted.network.groups() {
        let (first, last) = (group.segment.first(), group.segment.last());
        let straddles = planted.network.tensors().iter().any(|tensor| {
            let uses = tensor.consumers.iter().copied();
            let last_use = uses.max().unwrap_or(0);
            let leaves = last_use > last || tensor.is_result;
            first <= tensor.producer && tensor.producer < last && leaves
        });
        if straddles {
            continue;
        }
        table[first as usize][last as usize] = [
            group
                .phone
                .map(|cost| [cost.time.as_nanos(), cost.energy.as_nanojoules(), 0]),
            group.server.map(|time| {
                let nanos = time.as_nanos();
                [nanos, spent(planted.idle.as_microwatts(), nanos), nanos]
            }),
        ];
    }
    table
}

/// The costs of all splits of a phone with several processors, of each of which there is a network, whose layers have digits
/// that `keeps` takes, and that are on the server where `allowed` does. The server has the digit 0.
pub(crate) fn all_placed_costs(
    networks: &[Planted],
    allowed: impl Fn(u32) -> bool,
    keeps: impl Fn(&[u8]) -> bool,
) -> Vec<Costs> {
    let layers = networks[0].network.layers() as usize;
    let tables: Vec<GroupTable> = networks.iter().map(group_table).collect();
    let server = networks.len();
    let mut all = Vec::new();
    for number in 0..(server + 1).pow(layers as u32) {
        let place = |layer| number / (server + 1).pow(layer as u32) % (server + 1);
        let places: Vec<usize> = (0..layers).map(place).collect();
        let on_server = (0..layers).filter(|&layer| places[layer] == server);
        let on_server = on_server.fold(0, |all, layer| all | 1 << layer);
        let digits = places.iter().map(|&place| (place % server) as u8);
        if allowed(on_server) && keeps(&digits.collect::<Vec<_>>()) {
            let costs = |first: usize, last: usize| match places[first - 1] {
                place if place == server => tables[0][first][last][1],
                place => tables[place][first][last][0],
            };
            let start = link_costs(&networks[0], on_server);
            grow_placed(&costs, &places, 1, start, &mut all);
        }
    }
    all
}

/// Adds all ways to go on from layer `first`, where the layers of a group are at one place.
fn grow_placed(
    costs: &impl Fn(usize, usize) -> Option<Costs>,
    places: &[usize],
    first: usize,
    so_far: Costs,
    all: &mut Vec<Costs>,
) {
    if first > places.len() {
        all.push(so_far);
        return;
    }
    let is_there = |last: &usize| places[last - 1] == places[first - 1];
    for last in (first..=places.len()).take_while(is_there) {
        if let Some(more) = costs(first, last) {
            grow_placed(costs, places, last + 1, plus(so_far, more), all);
        }
    }
}

/// Adds all ways to go on from layer `first`.
fn grow(groups: &GroupTable, server: u32, first: usize, so_far: Costs, all: &mut Vec<Costs>) {
    let layers = groups.len() - 1;
    if first > layers {
        all.push(so_far);
        return;
    }
    let side = |layer: usize| (server >> (layer - 1) & 1) as usize;
    for last in (first..=layers).take_while(|&last| side(last) == side(first)) {
        if let Some(costs) = groups[first][last][side(first)] {
            grow(groups, server, last + 1, plus(so_far, costs), all);
        }
    }
}

pub(crate) fn keeps(limits: &SplitLimits, costs: &Costs) -> bool {
    limits
        .limited()
        .all(|(quantity, limit)| of(costs, quantity) <= limit)
}

/// The least of what the goal minimises, then the least costs, of all that keep the limits.
pub(crate) fn optimum(all: &[Costs], goal: SplitGoal) -> Option<Costs> {
    let keeping = all
        .iter()
        .copied()
        .filter(|costs| keeps(&goal.limits, costs));
    keeping.min_by_key(|costs| (of(costs, goal.minimise), *costs))
}

/// Those that no other of them beats, ascending.
pub(crate) fn front(all: &[Costs], limits: &SplitLimits) -> Vec<Costs> {
    let keeping = all.iter().copied().filter(|costs| keeps(limits, costs));
    let mut sorted: Vec<Costs> = keeping.collect();
    sorted.sort_unstable();
    let mut front: Vec<Costs> = Vec::new();
    for costs in sorted {
        let beats = |other: &Costs| (0..3).all(|place| other[place] <= costs[place]);
        if !front.iter().any(beats) {
            front.push(costs);
        }
    }
    front
}

/// The least cost of all splits.
pub(crate) fn least(all: &[Costs], quantity: Quantity) -> u64 {
    let costs = all.iter().map(|costs| of(costs, quantity));
    costs.min().expect("there are splits")
}
