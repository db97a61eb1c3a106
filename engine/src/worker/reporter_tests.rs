use candle_core::{DType, Device, Tensor};

use super::super::watch::Watch;
use super::*;
use crate::vae::Observer;

fn reporter() -> Reporter {
    Reporter::new(
        &Settings::parse(r#"{"run": "r", "attempt": 2}"#),
        vec!["decode".to_owned()],
    )
}

fn clip() -> Tensor {
    Tensor::zeros((1, 1, 1, 1, 1), DType::F32, &Device::Cpu).unwrap()
}

#[test]
fn the_user_ends_it_after_a_chunk_or_at_the_next_module() {
    let reporter = reporter();
    let mut watch = Watch::new(&reporter, None);
    watch.after("decoder.conv_in", &clip()).unwrap();
    reporter.check_cancelled_between_pieces().unwrap();
    assert_eq!(reporter.obey("stop_after_step"), Ok(json!(true)));
    watch.after("decoder.mid_block", &clip()).unwrap();
    assert!(matches!(
        reporter.check_cancelled_between_pieces(),
        Err(Error::Stopped)
    ));
    assert_eq!(reporter.obey("interrupt"), Ok(json!(true)));
    let end = watch.after("decoder.up_blocks.0", &clip());
    assert!(matches!(end, Err(Error::Stopped)));
    assert_eq!(
        reporter.obey("dance"),
        Err("`dance` is no command".to_owned())
    );
}

#[test]
fn who_is_alone_ends_as_if_the_user_had_asked_for_it() {
    let reporter = reporter();
    reporter.alone(Urgency::Chunk);
    reporter.check_cancelled(AT_ONCE).unwrap();
    assert!(matches!(
        reporter.check_cancelled_between_pieces(),
        Err(Error::Stopped)
    ));
    reporter.alone(Urgency::Module);
    assert!(matches!(
        reporter.check_cancelled(AT_ONCE),
        Err(Error::Stopped)
    ));
}

#[test]
fn a_piece_that_takes_too_long_is_ended() {
    let reporter = reporter();
    let mut watch = Watch::new(&reporter, Some(Duration::ZERO));
    std::thread::sleep(Duration::from_millis(2));
    let end = watch.after("decoder.conv_in", &clip()).unwrap_err();
    assert_eq!(
        end.to_string(),
        "a piece took more than 0 s; it was at decoder.conv_in: set a larger vae_piece_limit, or a smaller vae_tile or vae_chunk"
    );
}

#[test]
fn a_heartbeat_has_the_operation_in_flight_and_counts_of_tiers() {
    let reporter = reporter();
    reporter.phase("vae_decode", json!({}));
    reporter.progress(1, 4, "pieces");
    let op = |tier| Op {
        name: "conv3d",
        shape: &[1, 2, 3, 4, 5],
        weight: &[6, 5, 3, 3, 3],
        dtype: DType::F32,
        tier,
    };
    reporter.begins(op("native"));
    let failed = Error::Device("no algorithm".to_owned());
    reporter.ends(op("native"), Err(&failed));
    reporter.begins(op("cpu"));
    reporter.ends(op("cpu"), Ok(()));
    reporter.begins(op("native"));
    let beat = reporter.beat();
    assert_eq!(beat["phase"], "vae_decode");
    assert_eq!(beat["progress"]["total"], 4);
    assert_eq!(beat["ops"][0]["weight"], json!([6, 5, 3, 3, 3]));
    assert_eq!(beat["ops"][0]["dtype"], "float32");
    assert_eq!(beat["ops"][0]["device"], "cpu");
    assert_eq!(beat["calls"], 3);
    assert_eq!(
        beat["tiers"],
        json!({ "conv3d.native.failed": 1, "conv3d.cpu.ok": 1 })
    );
    let stacks = reporter.obey("stacks").unwrap();
    let frames = stacks[0]["frames"].to_string();
    assert!(
        frames.contains("1 of 4 pieces") && frames.contains("conv3d [1, 2, 3, 4, 5]"),
        "{frames}"
    );
    assert_eq!(reporter.hello()["attempt"], 2);
}
