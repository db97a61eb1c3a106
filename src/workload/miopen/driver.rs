//! MIOpenDriver's command line for a convolution, as MIOpen logs it.

use crate::model::{ConvDirection, ConvLayout, ConvType, Convolution};

/// A flag that matters here. Long forms as in MIOpen's `driver/conv_driver.hpp`.
#[derive(Debug, Clone, Copy)]
enum Flag {
    Batch,
    In,
    Out,
    Groups,
    Size(usize),
    Filter(usize),
    Pad(usize),
    Stride(usize),
    Dilation(usize),
    Dims,
    Direction,
    Mode,
    Layout,
}

fn flag(word: &str) -> Option<Flag> {
    Some(match word {
        "-n" | "--batchsize" => Flag::Batch,
        "-c" | "--in_channels" => Flag::In,
        "-k" | "--out_channels" => Flag::Out,
        "-g" | "--group_count" => Flag::Groups,
        "-!" | "--in_d" => Flag::Size(0),
        "-H" | "--in_h" => Flag::Size(1),
        "-W" | "--in_w" => Flag::Size(2),
        "-@" | "--fil_d" => Flag::Filter(0),
        "-y" | "--fil_h" => Flag::Filter(1),
        "-x" | "--fil_w" => Flag::Filter(2),
        "-$" | "--pad_d" => Flag::Pad(0),
        "-p" | "--pad_h" => Flag::Pad(1),
        "-q" | "--pad_w" => Flag::Pad(2),
        "-#" | "--conv_stride_d" => Flag::Stride(0),
        "-u" | "--conv_stride_h" => Flag::Stride(1),
        "-v" | "--conv_stride_w" => Flag::Stride(2),
        "-^" | "--dilation_d" => Flag::Dilation(0),
        "-l" | "--dilation_h" => Flag::Dilation(1),
        "-j" | "--dilation_w" => Flag::Dilation(2),
        "-_" | "--spatial_dim" => Flag::Dims,
        "-F" | "--forw" => Flag::Direction,
        "-m" | "--mode" => Flag::Mode,
        "-I" | "--in_layout" | "-f" | "--fil_layout" | "-O" | "--out_layout" => Flag::Layout,
        _ => return None,
    })
}

/// What the line has told so far. What has no value in it that can be left out stays 0
/// and makes no convolution.
struct Told {
    c: Convolution,
    layouts: Vec<ConvLayout>,
}

impl Told {
    const fn new(dtype: ConvType) -> Self {
        Self {
            c: Convolution {
                dims: 2,
                dtype,
                direction: ConvDirection::Forward,
                layout: ConvLayout::ChannelsFirst,
                transposed: false,
                n: 0,
                c: 0,
                k: 0,
                groups: 1,
                input: [0; 3],
                kernel: [0; 3],
                pad: [0; 3],
                stride: [1; 3],
                dilation: [1; 3],
            },
            layouts: Vec::new(),
        }
    }

    fn take(&mut self, flag: Flag, value: &str) -> Option<()> {
        let c = &mut self.c;
        let number = || value.parse::<u32>().ok();
        match flag {
            Flag::Batch => c.n = number()?,
            Flag::In => c.c = number()?,
            Flag::Out => c.k = number()?,
            // depthwise lines of some programs say 0 for "no groups"
            Flag::Groups => c.groups = number()?.max(1),
            Flag::Size(axis) => c.input[axis] = number()?,
            Flag::Filter(axis) => c.kernel[axis] = number()?,
            Flag::Pad(axis) => c.pad[axis] = number()?,
            Flag::Stride(axis) => c.stride[axis] = number()?,
            Flag::Dilation(axis) => c.dilation[axis] = number()?,
            Flag::Dims => c.dims = u8::try_from(number()?).ok()?,
            Flag::Direction => c.direction = direction(number()?)?,
            Flag::Mode => {
                c.transposed = match value {
                    "conv" => false,
                    "trans" => true,
                    _ => return None,
                }
            }
            Flag::Layout => self.layouts.push(layout(value)),
        }
        Some(())
    }

    fn done(self) -> Option<Convolution> {
        let Self { mut c, layouts } = self;
        c.layout = match layouts.split_first() {
            None => ConvLayout::ChannelsFirst,
            Some((first, rest)) if rest.iter().all(|l| l == first) => *first,
            Some(_) => ConvLayout::Other,
        };
        if c.dims == 2 {
            // flags of the third axis say nothing then
            (c.input[0], c.kernel[0], c.pad[0]) = (1, 1, 0);
            (c.stride[0], c.dilation[0]) = (1, 1);
        }
        c.checked().ok()
    }
}

fn direction(flag: u32) -> Option<ConvDirection> {
    Some(match flag {
        // 0 is MIOpenDriver's "all of them", which begins with the first
        0 | 1 => ConvDirection::Forward,
        2 => ConvDirection::BackwardData,
        4 => ConvDirection::BackwardWeights,
        _ => return None,
    })
}

/// Layout of a tensor by MIOpen's word for it.
pub(super) fn layout(word: &str) -> ConvLayout {
    match word {
        "NCHW" | "NCDHW" => ConvLayout::ChannelsFirst,
        "NHWC" | "NDHWC" => ConvLayout::ChannelsLast,
        _ => ConvLayout::Other,
    }
}

/// The convolution of a line's arguments, from the sub-command on (`convfp16 -n 1 …`).
/// Absent: no convolution, or one that the line does not tell whole.
pub fn convolution(arguments: &str) -> Option<Convolution> {
    let mut words = arguments.split_whitespace();
    let dtype = match words.next()? {
        "conv" => ConvType::Fp32,
        "convfp16" => ConvType::Fp16,
        "convbfp16" => ConvType::Bf16,
        "convint8" => ConvType::Int8,
        _ => return None,
    };
    let mut told = Told::new(dtype);
    while let Some(word) = words.next() {
        let Some(flag) = flag(word) else {
            // every other flag has a value too; a word that is no flag is a value
            continue;
        };
        told.take(flag, words.next()?)?;
    }
    told.done()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REPORTED: &str = "convfp16 -n 1 -c 96 --in_d 6 -H 482 -W 834 -k 96 --fil_d 3 -y 3 -x 3 --pad_d 0 -p 0 -q 0 --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1 -F 1 -t 1";

    #[test]
    fn three_dimensions_as_logged() {
        let c = convolution(REPORTED).unwrap();
        assert_eq!(c.to_string(), "conv3d fp16 1x96x6x482x834, 3x3x3 to 96");
        assert_eq!(c.driver_line(), format!("MIOpenDriver {REPORTED}"));
    }

    #[test]
    fn two_dimensions_with_padding_stride_groups_and_another_direction() {
        let c = convolution("convbfp16 -n 2 -c 64 -H 56 -W 57 -k 32 -y 3 -x 5 -p 1 -q 2 -u 2 -v 2 -l 1 -j 1 -m conv -g 4 -F 2 -t 1 -S 85").unwrap();
        assert_eq!((c.dims, c.dtype, c.groups), (2, ConvType::Bf16, 4));
        assert_eq!(c.direction, ConvDirection::BackwardData);
        assert_eq!((c.pad, c.stride), ([0, 1, 2], [1, 2, 2]));
        assert_eq!(c.output(), Some([1, 28, 29]));
    }

    #[test]
    fn long_forms_and_the_odd_short_ones_are_the_same() {
        let short = "conv -n 1 -c 8 -! 5 -H 9 -W 9 -k 8 -@ 3 -y 3 -x 3 -$ 1 -p 1 -q 1 -# 1 -u 1 -v 1 -^ 1 -l 1 -j 1 -_ 3 -m conv -g 2 -F 4 -I NDHWC -f NDHWC -O NDHWC";
        let long = "conv --batchsize 1 --in_channels 8 --in_d 5 --in_h 9 --in_w 9 --out_channels 8 --fil_d 3 --fil_h 3 --fil_w 3 --pad_d 1 --pad_h 1 --pad_w 1 --conv_stride_d 1 --conv_stride_h 1 --conv_stride_w 1 --dilation_d 1 --dilation_h 1 --dilation_w 1 --spatial_dim 3 --mode conv --group_count 2 --forw 4 --in_layout NDHWC --fil_layout NDHWC --out_layout NDHWC";
        let c = convolution(short).unwrap();
        assert_eq!(convolution(long), Some(c));
        assert_eq!(c.layout, ConvLayout::ChannelsLast);
        assert_eq!(c.direction, ConvDirection::BackwardWeights);
    }

    #[test]
    fn a_line_that_does_not_tell_all_tells_nothing() {
        for bad in [
            "",
            "pool -n 1 -c 3",
            "convfp16 -n 1 -c 96 --in_d 6 -H 482 -W 834 -k 96 -m conv -g 1 -F 1",
            &REPORTED.replace("-g 1", "-g 5"),
            &REPORTED.replace("-W 834", "-W 99999999999"),
            &REPORTED.replace("-W 834", "-W -8"),
            &REPORTED.replace("--in_d 6", "--in_d 2"),
            &REPORTED.replace("--spatial_dim 3", "--spatial_dim 4"),
            &REPORTED.replace("-F 1", "-F 8"),
            "convfp16 -n",
        ] {
            assert_eq!(convolution(bad), None, "{bad}");
        }
        let mixed = REPORTED.replace("-m conv", "--in_layout NDHWC --out_layout NCDHW -m conv");
        let c = convolution(&mixed).unwrap();
        assert_eq!(c.layout, ConvLayout::Other);
    }

    proptest! {
        #[test]
        fn any_words_are_survived(text in ".{0,200}") {
            let _ = convolution(&text);
            let _ = convolution(&format!("convfp16 {text}"));
        }

        #[test]
        fn what_is_printed_is_read_back(
            n in 1u32..9, c in 1u32..9, k in 1u32..9, g in 1u32..5,
            i in prop::array::uniform3(8u32..900), f in prop::array::uniform3(1u32..4),
            p in prop::array::uniform3(0u32..4), s in prop::array::uniform3(1u32..4),
            three in any::<bool>(), last in any::<bool>(), trans in any::<bool>(),
        ) {
            let flat = |v: [u32; 3], d| if three { v } else { [d, v[1], v[2]] };
            let conv = Convolution {
                dims: if three { 3 } else { 2 },
                dtype: ConvType::Bf16,
                direction: ConvDirection::Forward,
                layout: if last { ConvLayout::ChannelsLast } else { ConvLayout::ChannelsFirst },
                transposed: trans,
                n, c: c * g, k: k * g, groups: g,
                input: flat(i, 1), kernel: flat(f, 1), pad: flat(p, 0), stride: flat(s, 1),
                dilation: [1; 3],
            };
            prop_assume!(conv.checked().is_ok());
            let line = conv.driver_line();
            let arguments = line.strip_prefix("MIOpenDriver ").unwrap();
            prop_assert_eq!(convolution(arguments), Some(conv));
        }
    }
}
