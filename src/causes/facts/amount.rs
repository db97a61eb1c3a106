//! Amounts of memory in a line, and as people read them.

/// Bytes of a number and a unit in a match.
pub(super) fn bytes(found: &regex::Captures<'_>) -> Option<u64> {
    let pairs = [("n", "u"), ("n2", "u2"), ("n3", "u3")];
    let (n, u) = pairs
        .iter()
        .find_map(|(n, u)| Some((found.name(n)?, found.name(u)?)))?;
    let unit: u64 = match u.as_str() {
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => 1 << 40,
    };
    let (whole, part) = n.as_str().split_once('.').unwrap_or((n.as_str(), "0"));
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
