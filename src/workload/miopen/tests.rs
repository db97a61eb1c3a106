use proptest::prelude::*;

use super::*;
use crate::model::{FindFigures, FindMark, Workspace};

const ARGS: &str = "convfp16 -n 1 -c 96 --in_d 6 -H 482 -W 834 -k 96 -m conv -g 1 -F 1";

fn marks(lines: &[&str]) -> Vec<FindMark> {
    let mut r = FindReader::default();
    lines.iter().flat_map(|l| r.feed(l)).collect()
}

#[test]
fn a_find_opens_and_closes_by_driver_lines() {
    let find =
        format!("MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {ARGS} -t 1");
    let run =
        format!("1234 MIOpen: Command [LogCmdConvolution] ./bin/MIOpenDriver {ARGS} -t 1 -S 85");
    let other = "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 2 -t 1";
    let key = ARGS.to_owned();
    assert_eq!(
        marks(&[&find, other, &run, &run]),
        [
            FindMark::Opened { key: key.clone() },
            FindMark::Closed { key }
        ]
    );
}

#[test]
fn the_whole_story_at_level_five() {
    let got = marks(&[
        "MIOpen(HIP): Info [] MIOPEN_FIND_MODE = DYNAMIC_HYBRID(5)",
        "MIOpen(HIP) 12.5: Info [FindConvFwdAlgorithm] requestAlgoCount = 1, workspace = 150994944",
        "MIOpen(HIP): Info [TryLoad] Find-db regenerating.",
        "MIOpen(HIP): Info [FindSolutionImpl] GemmFwdRest (not searchable)",
        "MIOpen(HIP): Info [EvaluateInvokers] Evaluating Solver: miopenConvolutionFwdAlgoDirect:ConvDirectNaiveConvFwd",
        "MIOpen(HIP): Info [EvaluateInvokers] GemmFwdRest: : 41.2 < 3.40282e+38",
        "MIOpen(HIP): Info [FindCore] Selected: GemmFwdRest: x: 41.2, workspace_sz = 1",
        "MIOpen(HIP): Info [FillFindReturnParameters] FW Chosen Algorithm: GemmFwdRest , 150994944, 5.31",
    ]);
    assert_eq!(
        got,
        [
            FindMark::Mode {
                mode: "DYNAMIC_HYBRID(5)".into()
            },
            FindMark::Opened {
                key: "a convolution".into()
            },
            FindMark::Advance {
                detail: "no record, measuring".into()
            },
            FindMark::Solver {
                name: "GemmFwdRest".into()
            },
            FindMark::Solver {
                name: "ConvDirectNaiveConvFwd".into()
            },
            FindMark::Figures(FindFigures {
                solver: Some("GemmFwdRest".into()),
                ms: Some(41.2),
                ..FindFigures::default()
            }),
            FindMark::Advance {
                detail: "GemmFwdRest took 41.2 ms".into()
            },
            FindMark::Advance {
                detail: "selected GemmFwdRest".into()
            },
            FindMark::Closed {
                key: "a convolution".into()
            },
        ]
    );
}

#[test]
fn start_and_end_lines_of_newer_releases() {
    let got = marks(&[
        "MIOpen(HIP): Warning [operator()] Find Start: 96-6-482-834-3x3x3-F, findMode: DYNAMIC_HYBRID(5)",
        "MIOpen(HIP): Warning [operator()] Find Ended: 96-6-482-834-3x3x3-F",
    ]);
    let key = "96-6-482-834-3x3x3-F".to_owned();
    assert_eq!(
        got,
        [
            FindMark::Opened { key: key.clone() },
            FindMark::Mode {
                mode: "DYNAMIC_HYBRID(5)".into()
            },
            FindMark::Closed { key }
        ]
    );
}

#[test]
fn tuning_advances_only_when_the_figures_move() {
    let got = marks(&[
        "MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...",
        "MIOpen(HIP): Warning [SearchImpl] Runs left: 412, min time so far: 4.800, curr time: 11.000",
        "MIOpen(HIP): Warning [SearchImpl] Runs left: 412, min time so far: 4.800, curr time: 12.000",
        "MIOpen(HIP): Warning [SearchImpl] Runs left: 315, min time so far: 4.500, curr time: 12.000",
        "MIOpen(HIP): Warning [GenericSearch] ConvHipX: Searching the best solution among 480 (spare)...",
        "MIOpen(HIP): Warning [Monitor] 12/0/480 3.1, best within recent 7: 3.1 #9 128,64, ETA:171.2 sec.",
        "MIOpen(HIP): Warning [GenericSearch] #13/0/480 2.9 < 3.1 128,32",
    ]);
    let advances: Vec<_> = got
        .iter()
        .filter_map(|m| match m {
            FindMark::Advance { detail } => Some(detail.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        advances,
        [
            "412 runs left, best 4.800 ms",
            "315 runs left, best 4.500 ms",
            "12 of 480, best 3.1 ms, 171.2 s to go",
            "13 of 480, better: 2.9 ms",
        ]
    );
    assert!(got.contains(&FindMark::Solver {
        name: "ConvHipX".into()
    }));
}

#[test]
fn what_stands_for_no_time_yet_is_not_told() {
    let got = marks(&[
        "MIOpen(HIP): Warning [GenericSearch] ConvHipX: Searching the best solution among 480 (spare)...",
        "MIOpen(HIP): Warning [Monitor] 0/0/480 1e+10, best within recent 1: 3.21 #0 3.21, ETA: 0 sec.",
        "MIOpen(HIP): Warning [Monitor] 3/3/480 3.40282e+38, best within recent 3: 3.40282e+38 #0 , ETA: 90.5 sec.",
        "MIOpen(HIP): Warning [SearchImpl] Runs left: 412, min time so far: 3.40282e+38, curr time: 11.000",
    ]);
    let details: Vec<_> = got
        .iter()
        .filter_map(|m| match m {
            FindMark::Advance { detail } => Some(detail.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        details,
        ["0 of 480", "3 of 480, 90.5 s to go", "412 runs left"]
    );
    let figures = got.iter().filter_map(|m| match m {
        FindMark::Figures(f) => Some((f.best_ms, f.eta_s)),
        _ => None,
    });
    let figures: Vec<_> = figures.collect();
    assert_eq!(figures, [(None, None), (None, Some(90.5)), (None, None)]);
}

#[test]
fn tuning_tells_its_figures() {
    let got = marks(&[
        "MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...",
        "MIOpen(HIP): Warning [SearchImpl] Runs left: 412, min time so far: 4.800, curr time: 11.000",
        "MIOpen(HIP): Warning [Monitor] 12/0/480 3.1, best within recent 7: 3.1 #9 128,64, ETA:171.2 sec.",
        "MIOpen(HIP): Warning [GenericSearch] #13/0/480 2.9 < 3.1 128,32",
        "MIOpen(HIP): Info [EvaluateInvokers] solution(current vs best): ConvHipX: k: 1849.1 >= 4.9",
    ]);
    let figures: Vec<_> = got
        .iter()
        .filter_map(|m| match m {
            FindMark::Figures(f) => Some(f.clone()),
            _ => None,
        })
        .collect();
    let none = FindFigures::default;
    assert_eq!(
        figures,
        [
            FindFigures {
                left: Some(412),
                best_ms: Some(4.8),
                ..none()
            },
            FindFigures {
                tried: Some(12),
                total: Some(480),
                best_ms: Some(3.1),
                eta_s: Some(171.2),
                ..none()
            },
            FindFigures {
                tried: Some(13),
                total: Some(480),
                best_ms: Some(2.9),
                ..none()
            },
            FindFigures {
                solver: Some("ConvHipX".into()),
                ms: Some(1849.1),
                best_ms: Some(4.9),
                ..none()
            },
        ]
    );
}

#[test]
fn the_convolution_is_told_by_either_line_once() {
    let whole = "convbfp16 -n 1 -c 128 --in_d 17 -H 256 -W 256 -k 128 --fil_d 3 -y 3 -x 3 --pad_d 1 -p 1 -q 1 --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1 -F 1";
    let key = "128-17-256-256-3x3x3-128-17-256-256-1-1x1x1-1x1x1-1x1x1-0-NCDHW-BF16-F";
    let start = format!("MIOpen(HIP): Warning [operator()] Find Start: {key}, findMode: FAST(2)");
    let told = |first: &str| {
        let got = marks(&[first, &start]);
        let told = got.iter().filter_map(|m| match m {
            FindMark::Convolution(c) => Some(c.to_string()),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let words = ["conv3d bf16 1x128x17x256x256, 3x3x3 to 128"];
    let driver = |args: &str| {
        format!("MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {args} -t 1")
    };
    assert_eq!(told(&driver(whole)), words);
    assert_eq!(told(&driver("convbfp16 -n 1 -c 128")), words);
    assert_eq!(
        told("MIOpen(HIP): Info [FindConvFwdAlgorithm] requestAlgoCount = 1, workspace = 0"),
        words
    );
}

#[test]
fn a_solver_without_enough_workspace_is_told_once() {
    let line = "MIOpen(HIP): Warning [IsEnoughWorkspace] [EvaluateInvokers] Solver <GemmFwdRest>, workspace required: 2189426688, provided ptr: 0 size: 0";
    assert_eq!(
        marks(&[line, line]),
        [FindMark::Workspace(Workspace {
            solver: "GemmFwdRest".into(),
            required: 2_189_426_688,
            provided: 0,
        })]
    );
}

#[test]
fn versions_are_told_when_they_are_news() {
    let mut r = FindReader::default();
    let line = "pytorch version: 2.9.1+rocm6.4";
    assert_eq!(r.feed_other(line).len(), 1);
    assert_eq!(r.feed_other(line), []);
    let [FindMark::Release(both)] = &r.feed("MIOpen version: 3.4.0")[..] else {
        panic!("no version");
    };
    assert_eq!((both.rocm, both.miopen), (Some([6, 4]), Some([3, 4, 0])));
}

#[test]
fn chatter_is_what_we_asked_for() {
    for t in [
        "MIOpen(HIP): Info [Find] x",
        "77 MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv",
        "MIOpen(HIP): miopenStatus_t miopenSetTensor(...){",
        "MIOpen(HIP): handle = stream: 0, device_id: 0",
        "MIOpen(HIP): }",
    ] {
        assert!(is_chatter(t), "{t}");
        assert!(is_miopen(t), "{t}");
    }
    for t in [
        "MIOpen(HIP): Warning [SearchImpl] Runs left: 3",
        "MIOpen(HIP): Error [x] y",
        "MIOpen Error: /a.cpp:275: No suitable algorithm was found",
        "[MIOpen Fallback] Fallback system initialized",
        "plain",
    ] {
        assert!(!is_chatter(t), "{t}");
    }
    assert!(!is_miopen("[MIOpen Fallback] Fallback system initialized"));
}

proptest! {
    #[test]
    fn never_panics(text in ".{0,200}") {
        let _ = is_chatter(&text);
        let mut r = FindReader::default();
        let _ = r.feed(&text);
        let _ = r.feed_other(&text);
        let _ = r.feed(&format!("MIOpen(HIP): Warning [operator()] Find Start: {text}"));
        let _ = r.feed(&format!("MIOpen(HIP): Info [SearchImpl] {text}"));
        let _ = r.feed(&format!("MIOpen(HIP): Info [run] kernel_name = {text}"));
        let _ = r.feed(&format!("MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {text}"));
    }
}
