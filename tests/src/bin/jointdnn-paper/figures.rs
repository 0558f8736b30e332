//! The page: figure by figure what the paper says and what is found.

use layerlab_planners::edge::{
    Energy, PaperLink, Quantity, Side, SplitAlgorithm, SplitGoal, SplitLimits, SplitNetwork,
    SplitPlan,
};
use layerlab_profiles::Nanos;
use layerlab_tests::proof::figure::{Figure, page as page_of};

use crate::case::{Case, beside_slower, larger};
use crate::networks::Kind;
use crate::planner::{Planner, layers, link_name, pattern};
use crate::profiles::{Measured, PHONE};
use crate::tables::{
    IMPROVEMENT_HEADS, Improvement, better, improvement_rows, improvements, mean, most, on_server,
    short,
};

/// Phones as slow as this, in the times of the server.
const SLOWER: [f64; 4] = [2.0, 5.0, 12.0, 30.0];

/// What part of the weights a training step changes, in per cent.
const UPDATED: [f64; 7] = [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0];

const PHONE_SERVER: [Side; 2] = [Side::Phone, Side::Server];
const SERVER_PHONE: [Side; 2] = [Side::Server, Side::Phone];
const PHONE_SERVER_PHONE: [Side; 3] = [Side::Phone, Side::Server, Side::Phone];

pub(crate) fn page(measured: &Measured, planner: &mut Planner) -> String {
    let cases = &measured.cases[..];
    let training = |case: &Case| case.training(&case.inference, 1.0);
    let inferred = improvements(planner, cases, |case| case.inference.clone());
    let trained = improvements(planner, cases, training);
    let figures = [
        sides(cases),
        table_2(cases),
        figure_8(&inferred),
        figure_9(&trained),
        figure_10a(planner, of(cases, "alexnet")),
        figure_10b(cases, &inferred),
        figure_11(planner, cases),
        other_phones(planner, cases),
        table_4(&inferred),
        figure_12(planner, of(cases, "alexnet"), &inferred),
        constraints(planner, of(cases, "alexnet")),
    ];
    let page = page_of(
        "JointDNN's figures, here",
        &intro(measured, planner),
        &figures,
    );
    format!(
        "{page}\n## Figures 13 and 14: what activations look like, and how well they compress\n\nThey are not made here but in \
         compression.md beside this page, from activations and not from profiles.\n"
    )
}

fn intro(measured: &Measured, planner: &Planner) -> String {
    let [disturbed, all] = measured.disturbed;
    let undisturbed = match disturbed {
        0 => "nothing else ran meanwhile".to_owned(),
        some => format!(
            "{some} of its {all} profiles say that other programs ran meanwhile, so that their times can be tens of per cent too \
             long"
        ),
    };
    let reused = match measured.reused {
        0 => "all made for this page".to_owned(),
        reused => format!(
            "{reused} of which were made before, by another run or by hand, and lay in its folder"
        ),
    };
    format!(
        "`cargo tool jointdnn-paper tests/reports/jointdnn.md` made this page. It sets the figures of Eshratifar, Abrishami and \
         Pedram, \"JointDNN: An Efficient Training and Inference Engine for Intelligent Mobile Cloud Computing Services\", beside \
         plans from {} profiles of our own, {reused}.\n\n\
         - The server is this machine's CPU, really measured; {undisturbed}.\n\
         - The phone is SIMULATED, and so is what it draws: tests/{PHONE}, a Mate 10 Pro in the shape that papers give of it. A group of \
         layers runs on its CPU, in 32-bit floats, or its NPU, in 16 bits, whichever runs it sooner; what 16 bits cost in accuracy is not looked at. \
         It stands for the paper's Jetson TX2, whose GPU computes. It is the second phone that was tried: the first was one that takes 12 times \
         as long as the server at everything, beside which few of the paper's schedules appeared; that one and others like it are in the section on \
         other phones. The phone draws nothing while it waits, as in the paper.\n\
         - Links are those of the paper's Table 3, which are no measurements of ours. Nothing is sent.\n\
         - Networks have random weights. Some are smaller than the paper's, as the first table says. OverFeat and NiN are left out.\n\
         - Tensors and weights cross links at 8 bits, as in the paper (§4.2), and each tensor once. CPUs are timed with 32-bit floats.\n\
         - Groups of layers take the sum of their layers, on the NPU with moving in and out once: what else running layers together saves \
         (Figure 3) is not measured.\n\
         - Backward layers are NOT measured: each is taken to cost twice its layer (one product for the gradients of its input, one for \
         those of its weights), those without weights and the first as much as their layer, on either side.\n\
         - Nothing else was chosen so that a figure comes out.\n\n\
         {} plans were added up again by code that shares nothing with the planner; {} of them did not add up.",
        2 * all,
        planner.plans,
        planner.faults.len()
    )
}

fn of<'a>(cases: &'a [Case], name: &str) -> &'a Case {
    let mut all = cases.iter();
    let first = all.find(|case| case.network.name == name && case.batch == 1);
    first.expect("one of the networks")
}

fn alone(cases: &[Case]) -> impl Iterator<Item = &Case> {
    cases.iter().filter(|case| case.batch == 1)
}

/// What the whole takes on the phone and on the server, in ms, and what it draws on the phone, in mJ.
fn totals(network: &SplitNetwork) -> [f64; 3] {
    let mut groups = network.groups().iter();
    let whole = groups.find(|it| it.segment.layers() == network.layers());
    let whole = whole.expect("all groups");
    let phone = whole.phone.expect("a CPU runs all");
    let server = whole.server.expect("a CPU runs all");
    [
        phone.time.as_millis_f64(),
        server.as_millis_f64(),
        phone.energy.as_millijoules_f64(),
    ]
}

fn sides(cases: &[Case]) -> Figure {
    let row = |case: &Case| {
        let [phone, server, energy] = totals(&case.inference);
        vec![
            case.name(),
            case.network.scale.to_owned(),
            short(server),
            short(phone),
            format!("{:.2}", phone / server),
            short(energy),
        ]
    };
    let heads = [
        "network",
        "scale",
        "server, ms",
        "phone (simulated), ms",
        "times as long",
        "phone, mJ",
    ];
    Figure::table(
        "What the networks take on both sides",
        &heads,
        cases.iter().map(row).collect(),
    )
}

fn table_2(cases: &[Case]) -> Figure {
    let row = |case: &Case| {
        let cuts = case.cuts();
        let largest = cuts.iter().max().expect("cuts");
        let kilobytes = |bytes: u64| short(bytes as f64 / 1e3);
        vec![
            case.network.name.to_owned(),
            case.network.kind.name().to_owned(),
            case.network
                .layers
                .map_or("none".to_owned(), |count| count.to_string()),
            case.layers.len().to_string(),
            kilobytes(cuts[0]),
            kilobytes(*largest),
            kilobytes(*cuts.iter().min().expect("cuts")),
            kilobytes(cuts[cuts.len() - 1]),
        ]
    };
    let heads = [
        "network",
        "type",
        "layers in the paper",
        "here",
        "input, kB",
        "largest cut, kB",
        "least cut, kB",
        "output, kB",
    ];
    let kind = |kind: Kind| move |case: &&Case| case.network.kind == kind;
    let ends = |case: &Case| {
        let cuts = case.cuts();
        [cuts[0], cuts[cuts.len() - 1]]
    };
    let sizes = |cases: &[&Case]| {
        let text = |case: &&Case| {
            let [input, output] = ends(case);
            format!("{} {input} to {output} B", case.network.name)
        };
        cases.iter().map(text).collect::<Vec<_>>().join(", ")
    };
    let discriminative: Vec<&Case> = alone(cases).filter(kind(Kind::Discriminative)).collect();
    let generative: Vec<&Case> = alone(cases).filter(kind(Kind::Generative)).collect();
    let autoencoders: Vec<&Case> = alone(cases).filter(kind(Kind::Autoencoder)).collect();
    let never_grow = discriminative
        .iter()
        .filter(|case| case.cuts().is_sorted_by(|one, next| one >= next))
        .count();
    // Tensors alone: what passes a layer by is not made by it.
    let least = |case: &Case| {
        let tensors = case.inference.tensors().iter();
        tensors
            .map(|tensor| tensor.bytes.as_bytes())
            .min()
            .expect("tensors")
    };
    let narrow = |case: &&Case| ends(case).into_iter().all(|end| least(case) < end);
    let middles = autoencoders.iter().map(|case| {
        let [input, output] = ends(case);
        format!(
            "{} {input} to {} to {output} B",
            case.network.name,
            least(case)
        )
    });
    let middles: Vec<String> = middles.collect();
    let vgg16 = of(cases, "vgg16").cuts();
    let times = *vgg16.iter().max().expect("cuts") as f64 / vgg16[0] as f64;
    Figure::table("Table 2 and Figure 2: the networks", &heads, alone(cases).map(row).collect())
        .note(
            "The paper counts activations and normalisations as layers, which belong to the layer before them here. At 8 bits; a cut \
             holds all that is alive there, skips included.",
        )
        .claim(
            "discriminative networks: layers get smaller from input to output",
            discriminative.iter().all(|case| ends(case)[1] < ends(case)[0]),
            sizes(&discriminative),
        )
        .claim(
            "gradually: no layer is larger than the one before",
            never_grow == discriminative.len(),
            format!("so in {never_grow} of {}", discriminative.len()),
        )
        .claim(
            "generative networks: they grow",
            generative.iter().all(|case| ends(case)[1] > ends(case)[0]),
            sizes(&generative),
        )
        .claim(
            "autoencoders: the middle is smaller than input and output",
            autoencoders.iter().all(narrow),
            middles.join(", "),
        )
        .claim(
            "§4.2: layers can be larger than the input, as much as 10 times in VGG16",
            (9.0..=11.0).contains(&times),
            format!("{times:.1} times, after its first layer"),
        )
}

fn figure_8(inferred: &[Improvement<'_>]) -> Figure {
    let latency = most(inferred, Quantity::Latency);
    let energy = most(inferred, Quantity::Energy);
    let ratios = batch_ratios(inferred);
    let falls = ratios.iter().filter(|it| it.last() < it.first()).count();
    Figure::table(
        "Figure 8: inference",
        &IMPROVEMENT_HEADS,
        improvement_rows(inferred),
    )
    .note(
        "Less than the better of everything on the phone and everything on the server, which is what the paper compares with. On \
         the left plans of the least latency, on the right those of the least energy of the phone. Batches of several are networks of that \
         batch, measured as the others are; on the simulated phone arithmetic grows with the batch, and reading weights does not.",
    )
    .claim(
        "up to 66 % less latency",
        latency.0 >= 66.0,
        format!("up to {:.0} % ({}); less at all in {}", latency.0, latency.1, better(inferred, Quantity::Latency)),
    )
    .claim(
        "up to 86 % less energy",
        energy.0 >= 86.0,
        format!("up to {:.0} % ({}); less at all in {}", energy.0, energy.1, better(inferred, Quantity::Energy)),
    )
    .claim(
        "the larger the batch, the more preferable is the phone alone",
        falls == ratios.len(),
        format!(
            "phone only takes fewer times as long as server only at the largest batch than at 1 in {falls} of {}: {}",
            ratios.len(),
            ratios.iter().map(BatchRatio::text).collect::<Vec<_>>().join("; ")
        ),
    )
}

/// How many times as long as the server alone the phone alone takes, by batch.
struct BatchRatio {
    name: String,
    ratios: Vec<f64>,
}

impl BatchRatio {
    fn first(&self) -> f64 {
        self.ratios[0]
    }

    fn last(&self) -> f64 {
        self.ratios[self.ratios.len() - 1]
    }

    fn text(&self) -> String {
        format!("{} {:.2} to {:.2}", self.name, self.first(), self.last())
    }
}

/// Of the networks that were measured at several batches, over each link.
fn batch_ratios(inferred: &[Improvement<'_>]) -> Vec<BatchRatio> {
    let mut all: Vec<BatchRatio> = Vec::new();
    for one in inferred
        .iter()
        .filter(|it| it.case.network.batches.len() > 1)
    {
        let name = format!("{} over {}", one.case.network.name, link_name(one.link));
        let [phone, server] = [&one.latency.phone, &one.latency.server]
            .map(|plan| plan.cost().latency.as_millis_f64());
        match all.iter_mut().find(|it| it.name == name) {
            Some(there) => there.ratios.push(phone / server),
            None => all.push(BatchRatio {
                name,
                ratios: vec![phone / server],
            }),
        }
    }
    all
}

fn figure_9(trained: &[Improvement<'_>]) -> Figure {
    let latency = most(trained, Quantity::Latency);
    let energy = most(trained, Quantity::Energy);
    let backward = |it: &Improvement<'_>| {
        let count = it.case.layers.len() as u32;
        f64::from(on_server(&it.latency.joint, count + 1)) / f64::from(count)
    };
    let shares: Vec<f64> = trained.iter().map(backward).collect();
    Figure::table(
        "Figure 9: a step of online training",
        &IMPROVEMENT_HEADS,
        improvement_rows(trained),
    )
    .note("All weights change, so that the phone gets those of each layer whose gradients the server computes. Backward layers are not measured.")
    .claim(
        "up to 73 % less latency",
        latency.0 >= 73.0,
        format!("up to {:.0} % ({}); less at all in {}", latency.0, latency.1, better(trained, Quantity::Latency)),
    )
    .claim(
        "up to 56 % less energy",
        energy.0 >= 56.0,
        format!("up to {:.0} % ({}); less at all in {}", energy.0, energy.1, better(trained, Quantity::Energy)),
    )
    .claim(
        "only a few backward layers run on the server, because their weights must come back",
        mean(&shares) < 0.25,
        format!("{:.0} % of them in the plans of the least latency", 100.0 * mean(&shares)),
    )
}

fn figure_10a(planner: &mut Planner, alexnet: &Case) -> Figure {
    let count = alexnet.layers.len() as u32;
    let mut rows = Vec::new();
    let (mut ends, mut latencies) = (Vec::new(), Vec::new());
    for percent in UPDATED {
        let network = alexnet.training(&alexnet.inference, percent / 100.0);
        let mut row = vec![format!("{percent}")];
        let mut at = Vec::new();
        for link in PaperLink::ALL {
            let plan = planner.least(&network, link, Quantity::Latency, SplitAlgorithm::Joint);
            let latency = plan.cost().latency.as_millis_f64();
            let backward = on_server(&plan, count + 1);
            row.push(short(latency));
            row.push(backward.to_string());
            at.push(latency);
            if percent >= 100.0 {
                ends.push(backward);
            }
        }
        latencies.push(at);
        rows.push(row);
    }
    let last = latencies.len() - 1;
    let growth = |place: usize| latencies[last][place] / latencies[last - 1][place] - 1.0;
    let growths: Vec<f64> = (0..PaperLink::ALL.len()).map(growth).collect();
    let texts: Vec<String> = growths
        .iter()
        .map(|it| format!("{:.1} %", 100.0 * it))
        .collect();
    Figure::table(
        "Figure 10a: a training step of AlexNet, by the part of its weights that changes",
        &[
            "changed, %",
            "3G, ms",
            "backward layers on the server",
            "4G, ms",
            "backward layers on the server",
            "Wi-Fi, ms",
            "backward layers on the server",
        ],
        rows,
    )
    .claim(
        "the latency becomes constant as that part grows",
        growths.iter().all(|it| *it < 0.01),
        format!("from 50 to 100 % it grows by {}", texts.join(", ")),
    )
    .claim(
        "because all of the backward pass runs on the phone then",
        ends.iter().all(|&backward| backward == 0),
        format!("at 100 %, {ends:?} of {count} backward layers run on the server"),
    )
}

fn figure_10b(cases: &[Case], inferred: &[Improvement<'_>]) -> Figure {
    let several = || cases.iter().filter(|case| case.network.batches.len() > 1);
    let row = |case: &Case| {
        let [phone, server, _] = totals(&case.inference);
        let [once, once_there, _] = totals(&of(cases, case.network.name).inference);
        vec![
            case.network.name.to_owned(),
            case.batch.to_string(),
            short(phone),
            format!("{:.2}", phone / once),
            short(server),
            format!("{:.2}", server / once_there),
        ]
    };
    let grown = |place: usize| {
        let largest =
            several().filter(|case| case.batch == *case.network.batches.last().expect("one"));
        largest
            .map(|case| {
                let now = totals(&case.inference)[place];
                let once = totals(&of(cases, case.network.name).inference)[place];
                (case.network.name, case.batch, now / once)
            })
            .collect::<Vec<_>>()
    };
    let text = |all: &[(&str, u32, f64)]| {
        let each = all
            .iter()
            .map(|(name, batch, times)| format!("{name} {times:.1} times at {batch}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let (phone, server) = (grown(0), grown(1));
    let is_slower = |all: &[(&str, u32, f64)]| {
        all.iter()
            .all(|(_, batch, times)| *times < f64::from(*batch) * 0.75)
    };
    let sent = |it: &Improvement<'_>| it.latency.server.shares().upload.as_millis_f64();
    let uploads = inferred
        .iter()
        .filter(|it| it.case.network.name == "autoencoder" && it.link == PaperLink::WiFi);
    let uploads: Vec<f64> = uploads.map(sent).collect();
    let batches = f64::from(
        *of(cases, "autoencoder")
            .network
            .batches
            .last()
            .expect("one"),
    );
    let linear = uploads[uploads.len() - 1] / uploads[0];
    Figure::table(
        "Figure 10b: computing, by the batch",
        &[
            "network",
            "batch",
            "phone (simulated), ms",
            "times",
            "server, ms",
            "times",
        ],
        several().map(row).collect(),
    )
    .claim(
        "communication grows linearly with the batch",
        (linear / batches - 1.0).abs() < 0.01,
        format!("{linear:.2} times at {batches} (by the formula)"),
    )
    .claim(
        "computing on the phone grows at a much lower rate (here: by less than 3/4 of the batch)",
        is_slower(&phone),
        format!("simulated: {}", text(&phone)),
    )
    .claim(
        "and so on the server, which is really measured",
        is_slower(&server),
        text(&server),
    )
}

/// The fastest plans of a network: inference, and a training step.
fn fastest(
    planner: &mut Planner,
    case: &Case,
    inference: &SplitNetwork,
    link: PaperLink,
) -> [SplitPlan; 2] {
    let training = case.training(inference, 1.0);
    [inference, &training]
        .map(|it| planner.least(it, link, Quantity::Latency, SplitAlgorithm::Joint))
}

fn figure_11(planner: &mut Planner, cases: &[Case]) -> Figure {
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for case in alone(cases) {
        let [inference, training] = fastest(planner, case, &case.inference, PaperLink::WiFi);
        rows.push(vec![
            case.network.name.to_owned(),
            case.network.kind.name().to_owned(),
            layers(&inference),
            layers(&training),
        ]);
        found.push((case, inference, training));
    }
    let mut figure = Figure::table(
        "Figure 11: the fastest schedules over Wi-Fi",
        &["network", "type", "inference", "training"],
        rows,
    )
    .note("Of N layers, N + 1 is the backward layer of layer N, and 2N that of layer 1.");
    let claims: [(&str, &[Kind], usize, &[Side]); 4] = [
        (
            "discriminative networks infer phone → server",
            &[Kind::Discriminative],
            0,
            &PHONE_SERVER,
        ),
        (
            "their training goes phone → server → phone",
            &[Kind::Discriminative],
            1,
            &PHONE_SERVER_PHONE,
        ),
        (
            "generative networks infer server → phone",
            &[Kind::Generative],
            0,
            &SERVER_PHONE,
        ),
        (
            "autoencoders infer phone → server → phone",
            &[Kind::Autoencoder],
            0,
            &PHONE_SERVER_PHONE,
        ),
    ];
    for (says, kinds, place, sides) in claims {
        let of_kind = found.iter().filter(|it| kinds.contains(&it.0.network.kind));
        let plans: Vec<(&str, &SplitPlan)> = of_kind
            .map(|(case, inference, training)| (case.network.name, [inference, training][place]))
            .collect();
        let holds = plans.iter().all(|(_, plan)| plan.pattern() == sides);
        let text = |(name, plan): &(&str, &SplitPlan)| format!("{name} {}", pattern(plan));
        let texts: Vec<String> = plans.iter().map(text).collect();
        figure = figure.claim(says, holds, texts.join("; "));
    }
    figure
}

/// What the paper's server takes for AlexNet, by the 81 % of §4.1: 65.5 ms of upload are the other part.
const PAPER_ALEXNET_MS: f64 = 15.5;

/// Plans beside the phone, and beside phones that are so many times as slow as the server at everything.
fn other_phones(planner: &mut Planner, cases: &[Case]) -> Figure {
    let mut rows = Vec::new();
    let mut settings: Vec<(Kind, [Vec<Side>; 2])> = Vec::new();
    let (mut more_cuts, mut changed, mut all) = (0, 0, 0);
    for case in alone(cases) {
        let slower = SLOWER.map(|times| {
            let phone = format!("{times} times slower");
            (phone, beside_slower(&case.inference, times))
        });
        let own = ("Mate 10 Pro".to_owned(), case.inference.clone());
        for (phone, network) in std::iter::once(own).chain(slower) {
            let mut row = vec![case.network.name.to_owned(), phone];
            let mut trainings = Vec::new();
            for link in PaperLink::ALL {
                let [inference, training] = fastest(planner, case, &network, link);
                row.push(pattern(&inference));
                trainings.push(pattern(&training));
                let one_cut = planner.least(
                    &network,
                    link,
                    Quantity::Latency,
                    SplitAlgorithm::Neurosurgeon,
                );
                more_cuts += usize::from(one_cut.cost().latency > inference.cost().latency);
                let wide = planner.least(
                    &larger(&network, 4),
                    link,
                    Quantity::Latency,
                    SplitAlgorithm::Joint,
                );
                changed += usize::from(wide.pattern() != inference.pattern());
                all += 1;
                settings.push((case.network.kind, [inference.pattern(), training.pattern()]));
            }
            row.extend(trainings);
            rows.push(row);
        }
    }
    let count = |kind: Kind, place: usize, sides: &[Side]| {
        let of_kind = settings.iter().filter(|it| it.0 == kind);
        let (such, all) = of_kind.fold((0, 0), |(such, all), it| {
            (such + usize::from(it.1[place] == sides), all + 1)
        });
        (such > 0, format!("in {such} of {all} settings"))
    };
    let heads = [
        "network",
        "phone (simulated)",
        "3G",
        "4G",
        "Wi-Fi",
        "training, 3G",
        "training, 4G",
        "training, Wi-Fi",
    ];
    let mut figure = Figure::table("Figure 11, over the other links and beside other phones", &heads, rows).note(format!(
        "The others take 2, 5, 12 or 30 times as long as the server, whatever they do. §4.1 implies fewer than 5.3 times for AlexNet: server \
         only takes 15.5 ms and 65.5 ms of upload over Wi-Fi, and phone only less. With tensors of 32 bits the pattern of inference is another \
         in {changed} of {all} settings."
    ));
    for (says, kind, place, sides) in [
        (
            "the shape is there at all: discriminative, phone → server",
            Kind::Discriminative,
            0,
            &PHONE_SERVER[..],
        ),
        (
            "generative, server → phone",
            Kind::Generative,
            0,
            &SERVER_PHONE[..],
        ),
        (
            "autoencoder, phone → server → phone",
            Kind::Autoencoder,
            0,
            &PHONE_SERVER_PHONE[..],
        ),
        (
            "training of discriminative networks, phone → server → phone",
            Kind::Discriminative,
            1,
            &PHONE_SERVER_PHONE[..],
        ),
    ] {
        let (is_there, found) = count(kind, place, sides);
        figure = figure.claim(says, is_there, found);
    }
    figure.claim(
        "§5: one cut, as Neurosurgeon makes it, is not always the best",
        more_cuts > 0,
        format!("JointDNN's plan is faster in {more_cuts} of {all} settings (inference)"),
    )
}

fn table_4(inferred: &[Improvement<'_>]) -> Figure {
    let reduction = |quantity: Quantity, link: PaperLink| {
        let of_link = inferred
            .iter()
            .filter(|it| it.link == link && it.case.batch == 1);
        let each = of_link.map(|it| {
            let (joint, server) = match quantity {
                Quantity::Energy => (&it.energy.joint, &it.energy.server),
                Quantity::Latency | Quantity::ServerTime => (&it.latency.joint, &it.latency.server),
            };
            let [joint, all] =
                [joint, server].map(|plan| plan.cost().server_time.as_nanos() as f64);
            100.0 * (1.0 - joint / all)
        });
        mean(&each.collect::<Vec<_>>())
    };
    let [latency, energy] = [Quantity::Latency, Quantity::Energy]
        .map(|quantity| PaperLink::ALL.map(|link| reduction(quantity, link)));
    let row = |name: &str, values: [f64; 3], paper: [u32; 3]| {
        let mut row = vec![name.to_owned()];
        for (value, paper) in values.into_iter().zip(paper) {
            row.extend([format!("{value:.0}"), paper.to_string()]);
        }
        row
    };
    let all: Vec<f64> = latency.into_iter().chain(energy).collect();
    let largest = all.iter().copied().fold(0.0, f64::max);
    Figure::table(
        "Table 4: how much less the server computes than if it ran everything",
        &[
            "least", "3G, %", "paper", "4G, %", "paper", "Wi-Fi, %", "paper",
        ],
        vec![
            row("latency", latency, [84, 49, 12]),
            row("energy", energy, [73, 49, 51]),
        ],
    )
    .note("Means over the networks at batch 1.")
    .claim(
        "up to 84 % less",
        largest >= 84.0,
        format!("up to {largest:.0} %"),
    )
    .claim(
        "53 % less on average",
        mean(&all) >= 53.0,
        format!("{:.0} %", mean(&all)),
    )
    .claim(
        "for the least latency, the faster the link the more runs on the server",
        latency[0] > latency[1] && latency[1] > latency[2],
        format!(
            "{:.0}, {:.0} and {:.0} % less",
            latency[0], latency[1], latency[2]
        ),
    )
    .claim(
        "for the least energy, the slowest link leaves the server least",
        energy[0] > energy[1].max(energy[2]),
        format!(
            "{:.0}, {:.0} and {:.0} % less",
            energy[0], energy[1], energy[2]
        ),
    )
}

fn figure_12(planner: &mut Planner, alexnet: &Case, inferred: &[Improvement<'_>]) -> Figure {
    let mut rows = Vec::new();
    let (mut shares, mut is_phone_better) = (Vec::new(), Vec::new());
    let mut same_cut = 0;
    let mut cuts = Vec::new();
    for link in PaperLink::ALL {
        let latency = planner.compare(&alexnet.inference, link, Quantity::Latency);
        let energy = planner.compare(&alexnet.inference, link, Quantity::Energy);
        let share = 100.0 * latency.server.shares().communication();
        for (name, by_time, by_energy) in [
            ("phone only", &latency.phone, &energy.phone),
            ("server only", &latency.server, &energy.server),
            ("joint", &latency.joint, &energy.joint),
        ] {
            let parts = by_time.shares();
            let [phone, upload, server, download] =
                [parts.phone, parts.upload, parts.server, parts.download]
                    .map(|part| short(part.as_millis_f64()));
            rows.push(vec![
                format!("{}, {name}", link_name(link)),
                short(by_time.cost().latency.as_millis_f64()),
                phone,
                upload,
                server,
                download,
                layers(by_time),
                short(by_energy.cost().energy.as_millijoules_f64()),
                layers(by_energy),
            ]);
        }
        shares.push(share);
        is_phone_better.push(latency.phone.cost().latency < latency.server.cost().latency);
        same_cut += usize::from(layers(&latency.joint) == layers(&energy.joint));
        cuts.push(format!("{} {}", link_name(link), layers(&latency.joint)));
    }
    let paper = [99.0, 93.0, 81.0];
    let is_close = shares
        .iter()
        .zip(paper)
        .all(|(share, paper)| (share - paper).abs() <= 5.0);
    let texts: Vec<String> = shares.iter().map(|share| format!("{share:.0} %")).collect();
    let better: Vec<&str> = PaperLink::ALL
        .into_iter()
        .zip(&is_phone_better)
        .filter_map(|(link, is)| is.then_some(link_name(link)))
        .collect();
    let used = |it: &&Improvement<'_>| it.latency.joint.pattern().len() > 1;
    let collaborative: Vec<f64> = inferred
        .iter()
        .filter(used)
        .map(|it| 100.0 * it.latency.joint.shares().communication())
        .collect();
    let server = totals(&alexnet.inference)[1];
    Figure::table(
        "Figure 12 and §4.1: where AlexNet's time goes",
        &[
            "link",
            "least latency, ms",
            "phone",
            "upload",
            "server",
            "download",
            "layers",
            "least energy, mJ",
            "layers",
        ],
        rows,
    )
    .note(format!(
        "This machine takes {server:.0} ms for AlexNet, and the paper's server {PAPER_ALEXNET_MS} ms, as its 81 % imply: computing on the \
         server weighs {:.1} times as much here beside the same links.",
        server / PAPER_ALEXNET_MS
    ))
    .claim(
        "99, 93 and 81 % of the time of server only is communication over 3G, 4G and Wi-Fi (within 5 points)",
        is_close,
        texts.join(", "),
    )
    .claim(
        "communication dominates there: more than half over each link",
        shares.iter().all(|share| *share > 50.0),
        texts.join(", "),
    )
    .claim(
        "phone only is faster than server only over each link",
        is_phone_better.iter().all(|is| *is),
        match better.is_empty() {
            true => "over none".to_owned(),
            false => format!("over {}", better.join(", ")),
        },
    )
    .claim(
        "one plan, first layers on the phone and the rest on the server, is best for both latency and energy",
        same_cut == PaperLink::ALL.len(),
        format!("the two are the same over {same_cut} of 3 links; fastest: {}", cuts.join("; ")),
    )
    .claim(
        "§4.2: more than 75 % of the cost of collaborative plans is communication",
        !collaborative.is_empty() && mean(&collaborative) > 75.0,
        match collaborative.is_empty() {
            true => "no plan uses both sides".to_owned(),
            false => format!(
                "{:.0} % of the latency, mean of {} plans that use both sides",
                mean(&collaborative),
                collaborative.len()
            ),
        },
    )
}

/// §2.4.5: AlexNet over 4G within a battery's budget, the server's, and a deadline.
fn constraints(planner: &mut Planner, alexnet: &Case) -> Figure {
    let network = &alexnet.inference;
    let link = PaperLink::FourG;
    let joint = SplitAlgorithm::Joint;
    let fast = planner.least(network, link, Quantity::Latency, joint);
    let frugal = planner.least(network, link, Quantity::Energy, joint);
    let middle = |one: u64, other: u64| u64::midpoint(one, other);
    let energy = Energy::from_nanojoules(middle(
        fast.cost().energy.as_nanojoules(),
        frugal.cost().energy.as_nanojoules(),
    ));
    let deadline = Nanos::from_nanos(middle(
        fast.cost().latency.as_nanos(),
        frugal.cost().latency.as_nanos(),
    ));
    let server_time = Nanos::from_nanos(fast.cost().server_time.as_nanos() / 2);
    let none = SplitLimits::default();
    let goals = [
        ("least latency", Quantity::Latency, none),
        ("least energy", Quantity::Energy, none),
        (
            "least latency, battery budget (Eq. 18)",
            Quantity::Latency,
            SplitLimits {
                energy: Some(energy),
                ..none
            },
        ),
        (
            "least latency, half of the server's time (Eq. 19)",
            Quantity::Latency,
            SplitLimits {
                server_time: Some(server_time),
                ..none
            },
        ),
        (
            "least energy, deadline (Eq. 20)",
            Quantity::Energy,
            SplitLimits {
                latency: Some(deadline),
                ..none
            },
        ),
    ];
    let mut rows = Vec::new();
    let (mut kept, mut larac_is_worse) = (0, 0);
    for (name, minimise, limits) in goals {
        let goal = SplitGoal { minimise, limits };
        let limited = limits.limited().next();
        let limit = limited.map_or("none".to_owned(), |(quantity, limit)| {
            let unit = if quantity == Quantity::Energy {
                "mJ"
            } else {
                "ms"
            };
            format!("{} {unit}", short(limit as f64 / 1e6))
        });
        let Some(plan) = planner.plan(network, link, goal, joint) else {
            rows.push(vec![name.to_owned(), limit, "no plan".to_owned()]);
            continue;
        };
        let cost = plan.cost();
        kept += usize::from(limited.is_some() && limits.keeps(&cost));
        if limited.is_some() {
            let larac = planner.plan(network, link, goal, SplitAlgorithm::Larac);
            let is_worse = larac.is_none_or(|larac| larac.cost().of(minimise) > cost.of(minimise));
            larac_is_worse += usize::from(is_worse);
        }
        rows.push(vec![
            name.to_owned(),
            limit,
            layers(&plan),
            short(cost.latency.as_millis_f64()),
            short(cost.energy.as_millijoules_f64()),
            short(cost.server_time.as_millis_f64()),
        ]);
    }
    Figure::table(
        "§2.4.5: limits (AlexNet over 4G)",
        &[
            "goal",
            "limit",
            "layers",
            "latency, ms",
            "phone, mJ",
            "server, ms",
        ],
        rows,
    )
    .note("Limits of energy and latency half-way between the fastest plan and the most frugal one.")
    .claim(
        "battery, server and deadline can be limits",
        kept == 3,
        format!("{kept} of 3 are kept by a plan"),
    )
    .claim(
        "§2.3: LARAC approximates, so that the optimum is to be looked for",
        larac_is_worse > 0,
        format!("LARAC's plan is worse in {larac_is_worse} of 3"),
    )
}
