//! One convolution, as MIOpen names it: what is searched for, timed and run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Element type of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvType {
    /// 32-bit float.
    Fp32,
    /// 16-bit float.
    Fp16,
    /// Brain float.
    Bf16,
    /// 8-bit integer.
    Int8,
}

impl ConvType {
    /// Bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Fp32 => 4,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Int8 => 1,
        }
    }

    /// The word of MIOpen's logs in small letters.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }

    /// The sub-command of MIOpenDriver.
    pub const fn driver(self) -> &'static str {
        match self {
            Self::Fp32 => "conv",
            Self::Fp16 => "convfp16",
            Self::Bf16 => "convbfp16",
            Self::Int8 => "convint8",
        }
    }
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvDirection {
    /// The output. All that inference needs, but for transposed convolutions.
    Forward,
    /// The gradient of the input; also what a transposed convolution computes.
    BackwardData,
    /// The gradient of the weights.
    BackwardWeights,
}

impl ConvDirection {
    /// MIOpenDriver's `-F`.
    pub const fn driver(self) -> u32 {
        match self {
            Self::Forward => 1,
            Self::BackwardData => 2,
            Self::BackwardWeights => 4,
        }
    }
}

/// Where the channels stand in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvLayout {
    /// NCHW, NCDHW: MIOpen's default, and the only one that its GEMM solvers take.
    ChannelsFirst,
    /// NHWC, NDHWC.
    ChannelsLast,
    /// Anything else, such as another layout for each tensor.
    Other,
}

/// A convolution. Sizes per axis stand in the order depth, height, width; of a 2-D one
/// the depth is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Convolution {
    /// 2 or 3.
    pub dims: u8,
    /// Element type.
    pub dtype: ConvType,
    /// Direction.
    pub direction: ConvDirection,
    /// Layout.
    pub layout: ConvLayout,
    /// A transposed one (`-m trans`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transposed: bool,
    /// Batch.
    pub n: u32,
    /// Input channels, over all groups.
    pub c: u32,
    /// Output channels, over all groups.
    pub k: u32,
    /// Groups.
    pub groups: u32,
    /// Size of the input.
    pub input: [u32; 3],
    /// Size of the filter.
    pub kernel: [u32; 3],
    /// Zeros on both sides.
    pub pad: [u32; 3],
    /// Step.
    pub stride: [u32; 3],
    /// Distance of the filter's taps.
    pub dilation: [u32; 3],
}

/// Why figures make no convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConvolutionError {
    /// Neither 2-D nor 3-D.
    #[error("{0} dimensions; known are 2 and 3")]
    Dims(u8),
    /// A size that must be from 1 to 2^31 - 1 is not.
    #[error("{what} is {value}; it must be from 1 to 2147483647")]
    Size {
        /// Which.
        what: &'static str,
        /// What it is.
        value: u32,
    },
    /// The channels do not divide into the groups.
    #[error("{groups} groups do not divide {channels} channels")]
    Groups {
        /// Groups.
        groups: u32,
        /// Channels.
        channels: u32,
    },
    /// The filter is larger than the padded input.
    #[error("the filter is larger than the padded input")]
    Empty,
}

/// MIOpen counts in signed 32-bit numbers.
const MOST: u32 = i32::MAX as u32;

impl Convolution {
    /// The same, if it can be one.
    ///
    /// # Errors
    ///
    /// A size is 0 or beyond what MIOpen counts with, groups do not divide the channels,
    /// or nothing comes out.
    pub fn checked(self) -> Result<Self, ConvolutionError> {
        if !matches!(self.dims, 2 | 3) {
            return Err(ConvolutionError::Dims(self.dims));
        }
        let per_axis = [
            ("a size of the input", self.input),
            ("a size of the filter", self.kernel),
            ("a stride", self.stride),
            ("a dilation", self.dilation),
        ];
        let single = [
            ("the batch", self.n),
            ("the number of input channels", self.c),
            ("the number of output channels", self.k),
            ("the number of groups", self.groups),
        ];
        let sizes = per_axis
            .into_iter()
            .flat_map(|(what, axes)| axes.map(|v| (what, v)));
        for (what, value) in sizes.chain(single) {
            if !(1..=MOST).contains(&value) {
                return Err(ConvolutionError::Size { what, value });
            }
        }
        if let Some(value) = self.pad.into_iter().find(|v| *v > MOST) {
            let what = "a padding";
            return Err(ConvolutionError::Size { what, value });
        }
        let groups = self.groups;
        if let Some(channels) = [self.c, self.k].into_iter().find(|c| c % groups != 0) {
            return Err(ConvolutionError::Groups { groups, channels });
        }
        if self.output().is_none() {
            return Err(ConvolutionError::Empty);
        }
        Ok(self)
    }

    /// Size of the output: `(i + 2 pad - dilation (filter - 1) - 1) / stride + 1`, of a
    /// transposed one `(i - 1) stride - 2 pad + dilation (filter - 1) + 1`. Absent:
    /// nothing comes out.
    pub fn output(&self) -> Option<[u64; 3]> {
        let mut out = [0; 3];
        for (axis, o) in out.iter_mut().enumerate() {
            let of = |v: &[u32; 3]| i128::from(v[axis]);
            let (input, pad, stride) = (of(&self.input), of(&self.pad), of(&self.stride));
            let reach = of(&self.dilation) * (of(&self.kernel) - 1) + 1;
            let size = if self.transposed {
                (input - 1) * stride - 2 * pad + reach
            } else {
                let free = input + 2 * pad - reach;
                if free < 0 || stride == 0 {
                    return None;
                }
                free / stride + 1
            };
            *o = u64::try_from(size).ok().filter(|s| *s > 0)?;
        }
        Some(out)
    }

    /// Taps of the filter.
    pub fn taps(&self) -> u128 {
        self.kernel.into_iter().map(u128::from).product()
    }

    /// Whether it is a matrix product as it stands: filter 1, stride 1, no padding.
    pub fn is_pointwise(&self) -> bool {
        let ones = [1; 3];
        self.kernel == ones && self.stride == ones && self.pad == [0; 3]
    }

    /// The line to reproduce it with, in the form in which MIOpen logs it
    /// (`src/driver_arguments.cpp`): `MIOpenDriver convfp16 -n 1 …`.
    pub fn driver_line(&self) -> String {
        let mut line = format!("MIOpenDriver {}", self.dtype.driver());
        let mut put = |flag: &str, value: &dyn fmt::Display| {
            line.push(' ');
            line.push_str(flag);
            line.push(' ');
            line.push_str(&value.to_string());
        };
        let from = usize::from(self.dims != 3);
        let axes = [
            (["--in_d", "-H", "-W"], self.input),
            (["--fil_d", "-y", "-x"], self.kernel),
            (["--pad_d", "-p", "-q"], self.pad),
            (["--conv_stride_d", "-u", "-v"], self.stride),
            (["--dilation_d", "-l", "-j"], self.dilation),
        ];
        put("-n", &self.n);
        put("-c", &self.c);
        for (at, (flags, values)) in axes.into_iter().enumerate() {
            for (flag, value) in flags.into_iter().zip(values).skip(from) {
                put(flag, &value);
            }
            if at == 0 {
                put("-k", &self.k);
            }
        }
        if self.dims == 3 {
            put("--spatial_dim", &3);
        }
        let layout = match (self.layout, self.dims) {
            (ConvLayout::ChannelsLast, 3) => Some("NDHWC"),
            (ConvLayout::ChannelsLast, _) => Some("NHWC"),
            _ => None,
        };
        if let Some(layout) = layout {
            for flag in ["--in_layout", "--fil_layout", "--out_layout"] {
                put(flag, &layout);
            }
        }
        put("-m", if self.transposed { &"trans" } else { &"conv" });
        put("-g", &self.groups);
        put("-F", &self.direction.driver());
        put("-t", &1);
        line
    }
}

/// `conv3d fp16 1x96x6x482x834, 3x3x3 to 96`.
impl fmt::Display for Convolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = usize::from(self.dims != 3);
        let axes = |v: &[u32; 3]| v.map(|v| v.to_string())[from..].join("x");
        let kind = if self.transposed { "convtrans" } else { "conv" };
        write!(
            f,
            "{kind}{}d {} {}x{}x{}, {} to {}",
            self.dims,
            self.dtype.word(),
            self.n,
            self.c,
            axes(&self.input),
            axes(&self.kernel),
            self.k
        )?;
        if self.groups != 1 {
            write!(f, ", {} groups", self.groups)?;
        }
        match self.direction {
            ConvDirection::Forward => Ok(()),
            ConvDirection::BackwardData => f.write_str(", backward data"),
            ConvDirection::BackwardWeights => f.write_str(", backward weights"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shape of a public report (rocm-libraries#1329).
    fn wan() -> Convolution {
        Convolution {
            dims: 3,
            dtype: ConvType::Fp16,
            direction: ConvDirection::Forward,
            layout: ConvLayout::ChannelsFirst,
            transposed: false,
            n: 1,
            c: 96,
            k: 96,
            groups: 1,
            input: [6, 482, 834],
            kernel: [3; 3],
            pad: [0; 3],
            stride: [1; 3],
            dilation: [1; 3],
        }
    }

    #[test]
    fn sizes_of_the_output() {
        assert_eq!(wan().output(), Some([4, 480, 832]));
        let mut c = wan();
        c.pad = [1; 3];
        c.stride = [1, 2, 2];
        assert_eq!(c.output(), Some([6, 241, 417]));
        c.dilation = [3, 1, 1];
        assert_eq!(c.output(), Some([2, 241, 417]));
        c = wan();
        (c.transposed, c.stride, c.pad) = (true, [2; 3], [1; 3]);
        assert_eq!(c.output(), Some([11, 963, 1667]));
    }

    #[test]
    fn what_is_no_convolution_says_why() {
        let bad = |change: fn(&mut Convolution)| {
            let mut c = wan();
            change(&mut c);
            c.checked().unwrap_err().to_string()
        };
        assert_eq!(wan().checked(), Ok(wan()));
        assert_eq!(bad(|c| c.dims = 1), "1 dimensions; known are 2 and 3");
        assert!(bad(|c| c.stride = [1, 0, 1]).starts_with("a stride is 0"));
        assert!(bad(|c| c.c = u32::MAX).starts_with("the number of input channels"));
        assert!(bad(|c| c.pad[2] = u32::MAX).starts_with("a padding"));
        assert_eq!(bad(|c| c.groups = 5), "5 groups do not divide 96 channels");
        assert!(bad(|c| c.input[0] = 2).contains("larger than the padded input"));
    }

    #[test]
    fn words_and_driver_line() {
        assert_eq!(wan().to_string(), "conv3d fp16 1x96x6x482x834, 3x3x3 to 96");
        assert_eq!(
            wan().driver_line(),
            "MIOpenDriver convfp16 -n 1 -c 96 --in_d 6 -H 482 -W 834 -k 96 --fil_d 3 -y 3 -x 3 \
             --pad_d 0 -p 0 -q 0 --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 \
             --spatial_dim 3 -m conv -g 1 -F 1 -t 1"
        );
        let mut c = wan();
        (c.dims, c.input[0], c.kernel[0]) = (2, 1, 1);
        (c.layout, c.direction) = (ConvLayout::ChannelsLast, ConvDirection::BackwardData);
        (c.dtype, c.groups) = (ConvType::Fp32, 96);
        assert_eq!(
            c.to_string(),
            "conv2d fp32 1x96x482x834, 3x3 to 96, 96 groups, backward data"
        );
        assert_eq!(
            c.driver_line(),
            "MIOpenDriver conv -n 1 -c 96 -H 482 -W 834 -k 96 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 \
             -l 1 -j 1 --in_layout NHWC --fil_layout NHWC --out_layout NHWC -m conv -g 96 -F 2 -t 1"
        );
    }

    proptest! {
        #[test]
        fn no_figure_breaks_it(v in prop::array::uniform16(any::<u32>()), t in any::<bool>()) {
            let c = Convolution {
                transposed: t,
                dims: v[0].to_le_bytes()[0],
                n: v[1],
                c: v[2],
                k: v[3],
                groups: v[4],
                input: [v[5], v[6], v[7]],
                kernel: [v[8], v[9], v[10]],
                pad: [v[11], v[12], v[13]],
                stride: [v[14]; 3],
                dilation: [v[15]; 3],
                ..wan()
            };
            let _ = (c.checked().is_ok(), c.output(), c.taps(), c.to_string(), c.driver_line());
        }
    }
}
