//! MIOpen's Find by its own lines: one that tunes and ends, one that stays with the naive
//! kernel.

use framepack_tui::model::{Phase, VerdictId};

use crate::script::{Act, RX7900XTX, STRIX_HALO, Script};

/// HunyuanVideo's last layers at 17 frames of 256x256, and at 9 of 128x128.
const LARGE: &str = "convbfp16 -n 1 -c 128 --in_d 17 -H 256 -W 256 -k 128 --fil_d 3 -y 3 -x 3 --pad_d 1 -p 1 -q 1 --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1 -F 1 -t 1";

fn driver(call: &str, args: &str) -> String {
    format!("MIOpen(HIP): Command [{call}] ./bin/MIOpenDriver {args}")
}

fn small() -> String {
    LARGE
        .replace("--in_d 17", "--in_d 9")
        .replace("-H 256 -W 256", "-H 128 -W 128")
}

fn evaluates(s: &mut Script, algo: &str, solver: &str) {
    s.say(&format!(
        "MIOpen(HIP): Info [EvaluateInvokers] Evaluating Solver: miopenConvolutionFwdAlgo{algo}:{solver}"
    ));
}

#[test]
fn a_find_that_times_tunes_and_ends() {
    let mut s = Script::comfyui_decode(RX7900XTX, "");
    s.say(&driver("LogCmdFindConvolution", &small()));
    s.say("MIOpen(HIP): Info [TryLoad] Find-db regenerating.");
    evaluates(&mut s, "GEMM", "GemmFwdRest");
    s.act(10, Act::Cpu1);
    s.say("MIOpen(HIP): Info [EvaluateInvokers] solution(current vs best): GemmFwdRest: : 41.2 < 3.40282e+38");
    s.say("MIOpen(HIP): Info [GenericSearch] ConvHipImplicitGemm3DGroupFwdXdlops: Searching the best solution among 480...");
    let tuning = s.now() + 200.0;
    for i in 1..=40 {
        let (tried, eta) = (i * 12, 480 - i * 12);
        s.say(&format!("MIOpen(HIP): Info [Monitor] {tried}/0/480 4.{i}, best within recent 12: 4.{i} #9 128,64,32, ETA:{eta}.5 sec."));
        s.act(12, Act::Cpu1);
    }
    s.say("MIOpen(HIP): Info [FillFindReturnParameters] FW Chosen Algorithm: ConvHipImplicitGemm3DGroupFwdXdlops , 0, 4.2");
    s.say(&driver("LogCmdConvolution", &small()));
    s.act(20, Act::Vae);
    s.say("Prompt executed in 640.20 seconds");
    s.act(30, Act::Idle);
    s.is_calm(
        &[(tuning, VerdictId::CompileWarmup)],
        VerdictId::IdleWaiting,
    );
}

#[test]
fn a_find_that_stays_with_the_naive_kernel_names_the_tile_that_cures_it() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.say("pytorch version: 2.8.0+rocm6.4");
    s.say(&driver("LogCmdFindConvolution", LARGE));
    evaluates(&mut s, "Direct", "ConvDirectNaiveConvFwd");
    let onset = s.now();
    s.act_with(200, Act::Vae, |r| r.power = Some(150.0));
    let got = s.is_fault(
        VerdictId::FindStall,
        Phase::VaeDecode,
        onset + 110.0,
        onset + 180.0,
    );
    let (_, verdict) = got.main().unwrap();
    let sentence = &verdict.sentence;
    for words in [
        "it times the naive kernel",
        "a tile of at most 224x224 px or a chunk of at most 13 frames lets GEMM be used",
        "im2col needs 7.2 GiB, MIOpen allows 6.8 GiB, and only the naive kernel is left",
    ] {
        assert!(sentence.contains(words), "{sentence}");
    }
    let said = |words: &str| verdict.findings.iter().any(|f| f.text.contains(words));
    assert!(said(
        "convolution: conv3d bf16 1x128x17x256x256, 3x3x3 to 128"
    ));
    assert!(said("only the naive kernel is left"));
    assert!(said("solver: ConvDirectNaiveConvFwd"));
}

/// The same on a version that was not told, by the key of a database.
#[test]
fn where_the_version_is_not_known_both_are_told() {
    let mut s = Script::comfyui_decode(STRIX_HALO, "");
    s.say("MIOpen(HIP): Warning [operator()] Find Start: 96-6-482-834-3x3x3-96-4-480-832-1-0x0x0-1x1x1-1x1x1-0-NCDHW-FP16-F, findMode: DYNAMIC_HYBRID(5)");
    let onset = s.now();
    s.act(360, Act::Cpu1);
    let got = s.is_fault(
        VerdictId::FindStall,
        Phase::VaeDecode,
        onset + 110.0,
        onset + 360.0,
    );
    let (_, verdict) = got.main().unwrap();
    let sentence = &verdict.sentence;
    assert!(
        sentence.contains("a tile of at most 576x576 px lets GEMM be used"),
        "{sentence}"
    );
    assert!(
        sentence.contains("MIOpen allows 6.8 GiB before ROCm 7.11"),
        "{sentence}"
    );
    let both = "before ROCm 7.11 (at most 6.8 GiB) only the naive kernel is left; from ROCm 7.11 on GEMM fits";
    assert!(verdict.findings.iter().any(|f| f.text.contains(both)));
}
