def sub(p, pairs):
    s=open(p).read()
    for a,b in pairs:
        assert a in s, (p,a)
        s=s.replace(a,b,1)
    open(p,'w').write(s)
sub('daemon/src/plan.rs',[("PlanCommand::Edge(args) => edge::run(args),","PlanCommand::Edge(args) => edge::run(args, agent).await,"),
("    Edge(edge::EdgeArgs),","    Edge(Box<edge::EdgeArgs>),")])
sub('daemon/src/plan/edge.rs',[
("use std::path::PathBuf;\n","mod verify;\n\nuse std::path::PathBuf;\n"),
("use crate::exit::{Code, ExitWith, Failure};","use self::verify::{VerifiedSplit, VerifyArgs};\nuse crate::exit::{Code, ExitWith, Failure};"),
("    /// Print JSON\n    #[arg(long)]\n    json: bool,\n}","    /// Print JSON\n    #[arg(long)]\n    json: bool,\n    #[command(flatten)]\n    verify: VerifyArgs,\n}"),
("pub(super) fn run(args: &EdgeArgs) -> Result<(), Failure> {","pub(super) async fn run(args: &EdgeArgs, agent: Option<PathBuf>) -> Result<(), Failure> {"),
("    let network = MeasuredNetwork::new(","    let prepared = args.verify.prepare(&phone.header)?;\n    let network = MeasuredNetwork::new("),
("    match args.json {\n        true => output::print_json(&beside.json(&plan, &others)),\n        false => output::print(beside.text(&plan, &others)),\n    }",
"""    if !args.json {
        output::print(beside.text(&plan, &others, prepared.is_some()))?;
    }
    let verified = match prepared {
        Some(prepared) => {
            let (stretches, header) = (beside.stretches(&plan), &beside.phone.header);
            let run = prepared.run(&stretches, header, &beside.link.header, agent);
            Some(run.await?)
        }
        None => None,
    };
    match verified {
        verified if args.json => output::print_json(&beside.json(&plan, &others, verified.as_ref())),
        Some(verified) => output::print(format_args!("\\n{}", verified.text(&plan))),
        None => Ok(()),
    }"""),
("    fn text(&self, plan: &SplitPlan, others: &[(SplitAlgorithm, Option<Nanos>)]) -> String {","    fn text(\n        &self,\n        plan: &SplitPlan,\n        others: &[(SplitAlgorithm, Option<Nanos>)],\n        is_run: bool,\n    ) -> String {"),
("""        lines.push(
            "Estimates without intervals; accuracy and energy are not planned with, and nothing was run".to_owned(),
        );""","""        let end = match is_run {
            true => "",
            false => ", and nothing was run",
        };
        lines.push(format!(
            "Estimates without intervals; accuracy and energy are not planned with{end}"
        ));"""),
("    fn json(&self, plan: &SplitPlan, others: &[(SplitAlgorithm, Option<Nanos>)]) -> Value {","    fn json(\n        &self,\n        plan: &SplitPlan,\n        others: &[(SplitAlgorithm, Option<Nanos>)],\n        verified: Option<&VerifiedSplit>,\n    ) -> Value {"),
("        json!({\n            \"model\": self.phone","        let mut told = json!({\n            \"model\": self.phone"),
('            "baselines_latency_ns": others,\n        })','            "baselines_latency_ns": others,\n        });\n        if let Some(verified) = verified {\n            told["verified"] = verified.json();\n        }\n        told'),
])
s=open('daemon/src/link/from_phone.rs').read()
a=s.index("/// The port of a server on this machine, where tunnels lead."); b=s.index("fn asked(errand")
fn=s[a:b]; s=s[:a]+s[b:]
t=s.index("#[cfg(test)]\nmod tests"); tests=s[t:]; s=s[:t].rstrip()+"\n"
s=s.replace("use super::tunnel::Tunnel;","use super::tunnel::{Tunnel, port_here};")
open('daemon/src/link/from_phone.rs','w').write(s)
u=open('daemon/src/link/tunnel.rs').read()
u=u.rstrip()+"\n\n"+fn.replace("fn port_here","pub(crate) fn port_here").rstrip()+"\n\n"+tests
u=u.replace("use layerlab_farm::adb::{Phone","use anyhow::anyhow;\nuse layerlab_farm::adb::{Phone",1).replace("pub(super) struct Tunnel","pub(crate) struct Tunnel").replace("pub(super) async fn open(phone","pub(crate) async fn open(phone").replace("pub(super) fn address","pub(crate) fn address")
u=u.replace("//! A tunnel to a server on this machine, for as long as a phone measures the link that it is.","//! A tunnel to a server on this machine, for as long as a phone measures the link that it is, or runs a plan over it.")
open('daemon/src/link/tunnel.rs','w').write(u)
s=open('daemon/src/link.rs').read()
assert "mod tunnel;" in s
s=s.replace("mod tunnel;","pub(crate) mod tunnel;")
open('daemon/src/link.rs','w').write(s)
