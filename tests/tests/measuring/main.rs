//! What layerlab says of devices of which the truth is known, whatever is done to the device, the agent or the run.

mod answer_forms;
mod energy;
mod evaluation;
mod heat;
mod killed_agent;
mod machine_noise;
mod memory;
mod placements;
mod planted_truth;
mod refine;
mod steady;
mod three_processors;
mod unsupported;
