//! The Find that is shown: console lines through the real adapter into the snapshot.

use std::time::Duration;

use framepack_tui::model::{ActionId, Event, Line, Phase, Stream};
use framepack_tui::run::snapshot::FindView;
use framepack_tui::workload::adapter::{self, Adapter, AdapterKind, LaunchInfo};

use crate::sim::{Sim, plan};

struct Told {
    sim: Sim,
    adapter: Box<dyn Adapter + Send>,
}

impl Told {
    fn decoding() -> Self {
        Self {
            sim: Sim::running_in(plan(), Phase::VaeDecode),
            adapter: adapter::new(AdapterKind::Generic, &LaunchInfo::default()),
        }
    }

    fn say(&mut self, text: &str) {
        let line = Line {
            attempt: 1,
            stream: Stream::Stderr,
            text: text.to_owned(),
            row: 1,
            bar: false,
            truncated: false,
            chatter: false,
        };
        let events = self.adapter.feed(&line);
        self.sim.feed(Event::Line(line));
        for e in events {
            self.sim.feed(e);
        }
    }

    fn find(&self) -> Option<FindView> {
        self.sim.state.snapshot().find.map(|view| *view)
    }
}

const ARGS: &str = "convfp16 -n 1 -c 128 --in_d 17 -H 256 -W 256 -k 128 --fil_d 3 -y 3 -x 3 --pad_d 1 -p 1 -q 1 --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1 -F 1 -t 1";

#[test]
fn a_whole_find_is_shown_while_it_is_open() {
    let mut t = Told::decoding();
    assert_eq!(t.find(), None);
    t.say("torch 2.9.1+rocm7.11");
    t.say(&format!(
        "MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {ARGS}"
    ));
    let find = t.find().unwrap();
    assert_eq!(
        find.state.what(),
        "conv3d fp16 1x128x17x256x256, 3x3x3 to 128"
    );
    assert_eq!(
        find.state.driver_line().as_deref(),
        Some(format!("MIOpenDriver {ARGS}").as_str())
    );
    t.sim.run_for(Duration::from_secs(10));
    t.say("MIOpen(HIP): Info [EvaluateInvokers] Evaluating Solver: miopenConvolutionFwdAlgoGEMM:GemmFwdRest");
    t.say("MIOpen(HIP): Info [EvaluateInvokers] solution(current vs best): GemmFwdRest: : 41.2 < 3.40282e+38");
    let find = t.find().unwrap().state;
    assert_eq!(
        (find.ms, find.best_ms, find.solvers),
        (Some(41.2), Some(41.2), 1)
    );
    t.say("MIOpen(HIP): Info [GenericSearch] ConvHipImplicitGemm3DGroupFwdXdlops: Searching the best solution among 480...");
    t.say("MIOpen(HIP): Info [Monitor] 12/0/480 3.1, best within recent 7: 3.1 #9 128,64, ETA:171.2 sec.");
    let view = t.find().unwrap();
    let find = &view.state;
    assert_eq!(
        find.solver.as_deref(),
        Some("ConvHipImplicitGemm3DGroupFwdXdlops")
    );
    assert_eq!((find.tried, find.total), (Some(12), Some(480)));
    assert_eq!((find.best_ms, find.eta_s), (Some(3.1), Some(171.2)));
    assert!(find.opened < find.solver_since && find.advanced == t.sim.now);
    let words = view.forecast.unwrap().words();
    assert!(
        words.starts_with("im2col 7.2 GiB") && words.ends_with("GEMM fits"),
        "{words}"
    );
    t.say("MIOpen(HIP): Info [FillFindReturnParameters] FW Chosen Algorithm: ConvHipImplicitGemm3DGroupFwdXdlops , 0, 3.1");
    assert_eq!(t.find(), None);
}

#[test]
fn the_naive_kernel_and_its_cure_are_shown() {
    let mut t = Told::decoding();
    t.say("torch 2.8.0+rocm6.4");
    t.say(&format!(
        "MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {ARGS}"
    ));
    t.say("MIOpen(HIP): Info [FindSolutionImpl] ConvDirectNaiveConvFwd (not searchable)");
    let view = t.find().unwrap();
    assert!(view.state.is_naive());
    assert_eq!(view.cure.action, ActionId::TiledVae);
    assert!(
        view.cure.text.contains("at most 224x224 px"),
        "{}",
        view.cure.text
    );
    // the program went on
    t.sim.phase(Phase::Save);
    assert_eq!(t.find(), None);
}
