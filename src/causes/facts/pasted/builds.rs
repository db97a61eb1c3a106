//! For which library of cards the packages of torch were built, by their versions.

/// The packages beside torch that are of another build than torch, each with its version, by the
/// versions that were pasted; none: torch's version does not say for what it was built.
pub(super) fn odd<'v>(version_of: impl Fn(&str) -> Option<&'v str>) -> Option<Vec<String>> {
    let own = build(version_of("torch")?)?;
    let beside = ["torchvision", "torchaudio"].into_iter();
    let odd = beside.filter_map(|name| {
        let version = version_of(name)?;
        let other = !version.contains('+') || build(version).is_some_and(|b| b != own);
        other.then(|| format!("{name} {version}"))
    });
    Some(odd.collect())
}

/// What a version stands for: `rocm7.2` of `2.10.0+rocm7.2.1.git7e19`, `cu128` of `2.8.0+cu128`;
/// none: it does not say so.
fn build(version: &str) -> Option<String> {
    let (_, local) = version.split_once('+')?;
    if let Some(release) = local.strip_prefix("rocm") {
        let numbers: Vec<&str> = release.split('.').take(2).collect();
        return Some(format!("rocm{}", numbers.join(".")));
    }
    let cuda = local.strip_prefix("cu")?;
    let numbered = cuda.starts_with(|c: char| c.is_ascii_digit());
    numbered.then(|| local.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_another_build_are_named() {
        for (torch, vision, audio, want) in [
            (
                "2.10.0a0+rocm7.11.0a2",
                "0.25.0a0+rocm7.11.0a2",
                "2.9.1",
                Some("torchaudio 2.9.1"),
            ),
            (
                "2.9.1+rocm7.2.1.lw.git7e",
                "0.24.0+rocm7.2.1.gitb9",
                "2.9.0+rocm7.2.1.gite3",
                Some(""),
            ),
            (
                "2.8.0+cu128",
                "0.23.0+rocm6.4",
                "2.8.0+cu128",
                Some("torchvision 0.23.0+rocm6.4"),
            ),
            (
                "2.8.0+rocm6.4",
                "0.23.0",
                "2.8.0",
                Some("torchvision 0.23.0 and torchaudio 2.8.0"),
            ),
            ("2.8.0", "0.23.0", "2.8.0", None),
            ("2.8.0+git12ab", "0.23.0", "2.8.0", None),
        ] {
            let got = odd(|package| match package {
                "torch" => Some(torch),
                "torchvision" => Some(vision),
                _ => Some(audio),
            });
            assert_eq!(got.map(|o| o.join(" and ")).as_deref(), want, "{torch}");
        }
    }
}
