//! The key of a convolution in MIOpen's databases and in its Find lines:
//! `C-[D-]H-W-[ZxY]xX-K-[Do-]Ho-Wo-N-pads-strides-dilations-bias-layout-type-direction[_gG]`
//! (`src/conv/problem_description.cpp`).

use crate::model::{ConvDirection, ConvLayout, ConvType, Convolution};

use super::driver::layout;

/// The convolution of a key. Absent: it is none, or its sizes contradict each other.
pub fn convolution(key: &str) -> Option<Convolution> {
    let words: Vec<&str> = key.split('-').collect();
    // the filter is the first word with an `x`
    let at = words.iter().position(|w| w.contains('x'))?;
    let dims = match at {
        3 => 2,
        4 => 3,
        _ => return None,
    };
    let numbers =
        |words: &[&str]| -> Option<Vec<u32>> { words.iter().map(|w| w.parse().ok()).collect() };
    let axes = |values: &[u32], of_depth: u32| -> Option<[u32; 3]> {
        match *values {
            [h, w] if dims == 2 => Some([of_depth, h, w]),
            [d, h, w] if dims == 3 => Some([d, h, w]),
            _ => None,
        }
    };
    let split = |word: &str, of_depth: u32| {
        let parts: Vec<&str> = word.split('x').collect();
        axes(&numbers(&parts)?, of_depth)
    };
    let first = numbers(words.get(..at)?)?;
    let after = at + 1;
    let second = numbers(words.get(after..after + 1 + usize::from(dims))?)?;
    // batch, pads, strides, dilations, bias, layout (or three), type, direction
    let rest = words.get(after + 1 + usize::from(dims)..)?;
    let [
        batch,
        pads,
        strides,
        dilations,
        _bias,
        layouts @ ..,
        dtype,
        last,
    ] = rest
    else {
        return None;
    };
    let (direction, groups) = direction(last)?;
    let conv = Convolution {
        dims,
        dtype: dtype_of(dtype)?,
        direction,
        layout: layout_of(layouts)?,
        transposed: false,
        n: batch.parse().ok()?,
        c: *first.first()?,
        k: *second.first()?,
        groups,
        input: axes(first.get(1..)?, 1)?,
        kernel: split(words.get(at)?, 1)?,
        pad: split(pads, 0)?,
        stride: split(strides, 1)?,
        dilation: split(dilations, 1)?,
    };
    let output = axes(second.get(1..)?, 1)?;
    // of a backward one the key begins with what the forward one gives
    let turned = Convolution {
        c: conv.k,
        k: conv.c,
        input: output,
        ..conv
    };
    let both = [(conv, output), (turned, conv.input)];
    let of = |(c, out): (Convolution, [u32; 3])| {
        let right = c.output() == Some(out.map(u64::from));
        right.then(|| c.checked().ok()).flatten()
    };
    if direction == ConvDirection::Forward {
        of(both[0])
    } else {
        of(both[1]).or_else(|| of(both[0]))
    }
}

fn direction(word: &str) -> Option<(ConvDirection, u32)> {
    let (letter, groups) = match word.split_once("_g") {
        Some((letter, groups)) => (letter, groups.parse().ok()?),
        None => (word, 1),
    };
    let direction = match letter {
        "F" => ConvDirection::Forward,
        "B" => ConvDirection::BackwardData,
        "W" => ConvDirection::BackwardWeights,
        _ => return None,
    };
    Some((direction, groups))
}

fn dtype_of(word: &str) -> Option<ConvType> {
    Some(match word {
        "FP32" => ConvType::Fp32,
        "FP16" => ConvType::Fp16,
        "BF16" => ConvType::Bf16,
        "INT8" => ConvType::Int8,
        _ => return None,
    })
}

fn layout_of(words: &[&str]) -> Option<ConvLayout> {
    let (first, rest) = words.split_first()?;
    let same = rest.iter().all(|l| l == first);
    matches!(words.len(), 1 | 3).then(|| {
        if same {
            layout(first)
        } else {
            ConvLayout::Other
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_two_and_three_dimensions() {
        let key = "96-6-482-834-3x3x3-96-4-480-832-1-0x0x0-1x1x1-1x1x1-0-NCDHW-FP16-F";
        let c = convolution(key).unwrap();
        assert_eq!(c.to_string(), "conv3d fp16 1x96x6x482x834, 3x3x3 to 96");
        let key = "576-4-4-1x1-192-4-4-8-0x0-1x1-1x1-0-NHWC-FP32-F_g4";
        let c = convolution(key).unwrap();
        assert_eq!(c.to_string(), "conv2d fp32 8x576x4x4, 1x1 to 192, 4 groups");
        assert_eq!(c.layout, ConvLayout::ChannelsLast);
        let key = "64-56-56-3x3-32-28-28-2-1x1-2x2-1x1-0-NCHW-NHWC-NCHW-BF16-F";
        assert_eq!(convolution(key).unwrap().layout, ConvLayout::Other);
    }

    #[test]
    fn a_backward_key_begins_with_the_output() {
        let forward = "64-56-56-3x3-32-28-28-2-1x1-2x2-1x1-0-NCHW-BF16-F";
        let backward = "32-28-28-3x3-64-56-56-2-1x1-2x2-1x1-0-NCHW-BF16-B";
        let (f, b) = (
            convolution(forward).unwrap(),
            convolution(backward).unwrap(),
        );
        assert_eq!(b.direction, ConvDirection::BackwardData);
        assert_eq!((b.c, b.k, b.input), (f.c, f.k, f.input));
    }

    #[test]
    fn sizes_that_contradict_each_other_are_none() {
        for bad in [
            "96-6-482-834-3x3x3-F",
            "a convolution",
            "",
            "96-6-482-834-3x3x3-96-4-481-832-1-0x0x0-1x1x1-1x1x1-0-NCDHW-FP16-F",
            "96-6-482-834-3x3x3-96-4-480-832-1-0x0-1x1x1-1x1x1-0-NCDHW-FP16-F",
            "96-6-482-834-3x3x3-96-4-480-832-1-0x0x0-1x1x1-1x1x1-0-NCDHW-FP16-Q",
            "96-6-482-834-3x3x3-96-4-480-832-1-0x0x0-0x1x1-1x1x1-0-NCDHW-FP16-F",
        ] {
            assert_eq!(convolution(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_key_is_survived(text in ".{0,120}", tail in "[0-9x]{0,5}(-[0-9x]{0,5}){0,14}-NCHW-FP16-F") {
            let _ = convolution(&text);
            let _ = convolution(&tail);
        }
    }
}
