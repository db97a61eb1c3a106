//! Rules about the releases of ROCm that read a variable.

use super::knob::{knob, release};
use super::problem::Problem;
use super::schema::Profile;

/// K102: a variable that the ROCm on which the profile was tested does not read yet.
pub(super) fn check(profile: &Profile, out: &mut Vec<Problem>) {
    let Some(tested) = profile.tested.facts.get("rocm") else {
        return;
    };
    let Some(rocm) = release(&tested.value) else {
        return;
    };
    let rungs = profile.ladder.iter().flat_map(|r| &r.env);
    for (name, v) in profile.env.set.iter().chain(rungs) {
        let Some(knob) = knob(name) else { continue };
        let Some(first) = knob.first_rocm().filter(|first| *first > rocm) else {
            continue;
        };
        let [major, minor] = first;
        out.push(
            Problem::warning(
                "K102",
                format!(
                    "`{name}` is read from ROCm {major}.{minor} on; [tested] names ROCm {}",
                    tested.value
                ),
            )
            .at(&v.key)
            .label("did nothing where the profile was tested")
            .fix("remove it, or test the profile on a ROCm that reads it"),
        );
    }
}
