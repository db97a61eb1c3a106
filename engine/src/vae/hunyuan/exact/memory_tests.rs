use super::*;
use crate::ops::cpu::Cpu;

/// Bytes of a number in half precision.
const HALF: u64 = 2;

fn last(latents: [usize; 3]) -> Sizes {
    levels(&HunyuanConfig::default(), latents).pop().unwrap()
}

fn all(grids: Grids) -> [Grid; 5] {
    let Grids {
        enlarging,
        first: [a, b],
        others: [c, d],
    } = grids;
    [enlarging, a, b, c, d]
}

#[test]
fn only_passes_that_need_it_go_in_bands() {
    let sizes = last([18, 90, 160]);
    assert_eq!(sizes.size, [69, 720, 1280]);
    // the clip, what it is enlarged from, and little more
    let held = HALF * (69 * 720 * 1280 * 128 + 35 * 360 * 640 * 256);
    let budget = held + (320 << 20);
    let plan = choose(&sizes, &Cpu, HALF, budget);
    assert!(plan.peak <= budget, "{plan:?}");
    let frame = Grid {
        frames: 1,
        rows: 720,
    };
    let Grids {
        enlarging,
        first: [making, adding],
        others,
    } = plan.grids;
    assert_eq!(
        (enlarging, others),
        (frame, [frame; 2]),
        "the enlarged clip's source has gone, or the clip is not there yet"
    );
    assert!(making.rows < adding.rows && adding.rows < 720, "{plan:?}");
}

#[test]
fn a_pass_takes_the_largest_pieces_that_fit() {
    let sizes = last([18, 90, 160]);
    let held = HALF * (69 * 720 * 1280 * 128 + 35 * 360 * 640 * 256);
    let mut before = [0; 5];
    for more in [300u64, 400, 600, 1000, 2000, 4000] {
        let plan = choose(&sizes, &Cpu, HALF, held + (more << 20));
        assert!(plan.peak <= held + (more << 20), "{plan:?}");
        let sizes = all(plan.grids).map(|grid| grid.frames * grid.rows);
        let grown = sizes.iter().zip(before).all(|(&now, then)| now >= then);
        assert!(grown, "{before:?} then {plan:?}");
        before = sizes;
    }
    assert_eq!(before, [720; 5]);
}

#[test]
fn bands_begin_at_pairs_and_end_at_the_least_height() {
    for h in [1, 16, 17, 34, 360, 544, 720, 2160] {
        let all = grids([1, h, 4]);
        assert_eq!(all[0].rows, h);
        let bands = &all[1..];
        assert!(bands.iter().all(|grid| grid.rows % 2 == 0), "{bands:?}");
        assert!(all.is_sorted_by(|a, b| a.rows > b.rows), "{all:?}");
        assert_eq!(
            all.last().map(|grid| grid.rows),
            Some(h.min(BAND)),
            "{all:?}"
        );
    }
}

#[test]
fn with_too_little_room_the_least_is_taken() {
    let sizes = last([5, 24, 20]);
    let plan = choose(&sizes, &Cpu, HALF, 0);
    let least = plan.peak;
    assert!(!plan.mode.keep && !plan.mode.whole, "{plan:?}");
    assert_eq!(choose(&sizes, &Cpu, HALF, least).peak, least);
    let none = choose(&sizes, &Cpu, HALF, least - 1);
    assert_eq!(none.peak, least, "{none:?}");
}
