//! Amounts of memory in a line, and as people read them.

/// Bytes of a number and a unit in a match.
pub(super) fn bytes(found: &regex::Captures<'_>) -> Option<u64> {
    let pairs = [("n", "u"), ("n2", "u2"), ("n3", "u3")];
    let (n, u) = pairs
        .iter()
        .find_map(|(n, u)| Some((found.name(n)?, found.name(u)?)))?;
    scaled(n.as_str(), u.as_str().chars().next().and_then(unit)?)
}

/// Bytes of a unit by its first letter.
pub(super) const fn unit(letter: char) -> Option<u64> {
    match letter {
        'B' | 'b' => Some(1),
        'K' | 'k' => Some(1 << 10),
        'M' | 'm' => Some(1 << 20),
        'G' | 'g' => Some(1 << 30),
        'T' | 't' => Some(1 << 40),
        _ => None,
    }
}

/// Bytes of a number, which may have a fraction, in a unit.
pub(super) fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let part: String = part.chars().take(3).collect();
    let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part: u64 = part.parse().ok()?;
    whole.checked_mul(unit)?.checked_add(part * unit / scale)
}

/// Gibibytes, or mebibytes, for people.
pub(super) fn gib(bytes: u64) -> String {
    if bytes < 1 << 30 {
        return format!("{} MiB", bytes >> 20);
    }
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
