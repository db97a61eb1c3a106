//! Measures the CUDA backend and holds it against reference outputs.
//!
//! ```text
//! measure operations                   attention, convolutions and sums against the processor's, at sizes that fixtures do not have
//! measure fixtures FOLDER              every case of engine/tests/fixtures, in every precision and way
//! measure decode MODEL FILE OPTIONS    FILE: safetensors with z, and out where there is something to compare with
//! measure engines DTYPE CxO,TxHxW …    what cuDNN's engines take for 3x3x3 taps
//! measure peaks MODEL CASE…            predicted and measured memory; CASE: TxHxW[,tile=LENGTH/STRIDE][,frames=LENGTH/STRIDE][,exact=MIB]
//! ```
//! Options of `decode`: `--dtype bf16|f16|f32`, `--cap GIB`, `--times N`, `--chunk FRAMES`, `--tile LENGTH,STRIDE`, `--runs LENGTH,STRIDE`, `--scratch MIB`,
//! `--exact GIB` (the budget), `--against NAME` (of the
//! tensor to compare with), `--plan 1` (what the
//! planner chooses), `--no-dnn 1`, `--fuse 1`, `--profile 1`.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes from the command line, and figures for people"
)]

use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use framepack_engine::vae::Run;
use framepack_engine_cuda::{Cuda, Options};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

macro_rules! say {
    ($($words:tt)*) => {
        std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($words)*)))?
    };
}

#[path = "../../../engine/examples/peaks/case.rs"]
mod case;
mod decode;
mod fixtures;
mod kept;
mod operations;
mod peaks;

fn pair([length, stride]: [usize; 2]) -> Run {
    Run { length, stride }
}

/// The largest difference, and the root of its mean square over that of `want`.
fn difference(got: &Tensor, want: &Tensor) -> Result<(f32, f64)> {
    let got = got.to_device(&Device::Cpu)?;
    if got.dims() != want.dims() {
        return Err(format!("{:?} where {:?} was due", got.dims(), want.dims()).into());
    }
    let (got, want) = (
        got.flatten_all()?.to_vec1::<f32>()?,
        want.flatten_all()?.to_dtype(DType::F32)?.to_vec1::<f32>()?,
    );
    let (mut most, mut off, mut all) = (0f32, 0f64, 0f64);
    for (a, b) in got.iter().zip(&want) {
        let d = (a - b).abs();
        most = if d.is_nan() { f32::NAN } else { most.max(d) };
        off += f64::from(d) * f64::from(d);
        all += f64::from(*b) * f64::from(*b);
    }
    Ok((most, (off / all).sqrt()))
}

/// `--name value` of the arguments.
fn options(args: &[String]) -> HashMap<&str, &str> {
    let mut all = HashMap::new();
    for (i, arg) in args.iter().enumerate() {
        if let Some(name) = arg.strip_prefix("--") {
            all.insert(name, args.get(i + 1).map_or("", String::as_str));
        }
    }
    all
}

fn dtype(name: &str) -> Result<DType> {
    Ok(match name {
        "f32" => DType::F32,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        _ => return Err(format!("{name} is not bf16, f16 or f32").into()),
    })
}

fn engines(precision: &str, shapes: &[String]) -> Result<()> {
    let options = Options {
        dtype: dtype(precision)?,
        ..Options::default()
    };
    let cuda = Cuda::new(options)?;
    for shape in shapes {
        let numbers: Vec<usize> = shape
            .split([',', 'x'])
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let [inputs, outputs, t, h, w, rest @ ..] = numbers.as_slice() else {
            return Err(format!("{shape}: CxO,TxHxW,KTxKHxKW").into());
        };
        let taps = if let [a, b, c] = rest {
            [*a, *b, *c]
        } else {
            [3; 3]
        };
        for line in cuda.compare_engines([*inputs, *outputs], [*t, *h, *w], taps)? {
            say!("{shape} {line}");
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["operations"] => {
            if !operations::run()? {
                return Err("an operation differs from the processor's".into());
            }
            if !kept::run()? {
                return Err("weights that are kept are not those that are made again".into());
            }
            Ok(())
        }
        ["fixtures", folder] => {
            if !fixtures::run(Path::new(folder))? {
                return Err("some cases are over their bound".into());
            }
            Ok(())
        }
        ["decode", model, file, ..] => {
            decode::run(Path::new(model), Path::new(file), &options(&args[3..]))
        }
        ["peaks", model, ..] => peaks::run(Path::new(model), &args[2..]),
        ["engines", precision, ..] => engines(precision, &args[2..]),
        _ => Err("usage: measure operations|fixtures|decode|engines|peaks …".into()),
    }
}
