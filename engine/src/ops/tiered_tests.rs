use std::sync::Mutex;

use super::super::cpu::Cpu;
use super::*;

/// Keeps what is told.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl Watcher for Log {
    fn begins(&self, _: Op<'_>) {}

    fn ends(&self, op: Op<'_>, result: std::result::Result<(), &Error>) {
        let end = if result.is_ok() { "ok" } else { "failed" };
        let word = format!("{}.{}.{end}", op.name, op.tier);
        self.0.lock().unwrap().push(word);
    }
}

/// The processor, whose convolutions fail.
#[derive(Debug)]
struct Broken {
    error: fn() -> Error,
}

impl Backend for Broken {
    fn device(&self) -> &Device {
        Cpu.device()
    }
    fn load_conv(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Conv3d> {
        Cpu.load_conv(weight, bias)
    }
    fn unload_conv(&self, conv: &Conv3d) -> Result<(Tensor, Option<Tensor>)> {
        Cpu.unload_conv(conv)
    }
    fn conv3d(
        &self,
        _: ConvInput<'_>,
        _: &Prologue<'_>,
        _: &Conv3d,
        _: Option<&Tensor>,
    ) -> Result<Tensor> {
        Err((self.error)())
    }
    fn group_sums(&self, clip: &Tensor, groups: usize) -> Result<GroupSums> {
        Cpu.group_sums(clip, groups)
    }
    fn attention(&self, qkv: &Tensor, mask: AttentionMask) -> Result<Tensor> {
        Cpu.attention(qkv, mask)
    }
}

fn ramp(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (0u16..)
        .take(count)
        .map(|i| f32::from(i % 23) - 11.0)
        .collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap()
}

fn run(backend: &dyn Backend, times: usize) -> Result<Vec<f32>> {
    let conv = backend.load_conv(&ramp(&[5, 3, 3, 2, 1]), Some(&ramp(&[5])))?;
    let conv = conv.with_stride([1, 2, 1]);
    let clip = ramp(&[1, 4, 5, 3, 3]);
    let gamma = ramp(&[3]);
    let prologue = Prologue {
        norm: Norm::Rms(&gamma),
        silu: true,
        ..Prologue::none(4, 5, 3)
    };
    let mut out = Vec::new();
    for _ in 0..times {
        out = backend
            .conv3d((&clip).into(), &prologue, &conv, None)?
            .flatten_all()?
            .to_vec1()?;
    }
    Ok(out)
}

#[test]
fn a_convolution_that_fails_is_made_another_way_and_the_shape_is_remembered() {
    let broken = Broken {
        error: || Error::Tensor(candle_core::Error::Msg("no algorithm".to_owned())),
    };
    let log = Arc::new(Log::default());
    let tiered = Tiered::new(
        ("native", Arc::new(broken)),
        vec![("cpu", Arc::new(Cpu))],
        Arc::clone(&log) as Arc<dyn Watcher>,
    );
    assert_eq!(run(&tiered, 2).unwrap(), run(&Cpu, 1).unwrap());
    assert_eq!(
        *log.0.lock().unwrap(),
        ["conv3d.native.failed", "conv3d.cpu.ok", "conv3d.cpu.ok"]
    );
}

#[test]
fn arguments_that_do_not_fit_fail_at_once() {
    let broken = Broken {
        error: || Error::Argument("no fit".to_owned()),
    };
    let log = Arc::new(Log::default());
    let tiered = Tiered::new(
        ("native", Arc::new(broken)),
        vec![("cpu", Arc::new(Cpu))],
        Arc::clone(&log) as Arc<dyn Watcher>,
    );
    assert_eq!(run(&tiered, 1).unwrap_err().to_string(), "no fit");
    assert_eq!(*log.0.lock().unwrap(), ["conv3d.native.failed"]);
}
