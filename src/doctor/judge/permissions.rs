//! Device nodes and the rights to open them.

use crate::doctor::facts::{DeviceNode, Facts, Look, UserFacts};
use crate::doctor::finding::{Finding, Id};

const KFD: &str = "/dev/kfd";

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    surroundings(facts, out);
    let devices = match &facts.devices {
        Look::Known(devices) => devices,
        Look::Unknown(why) => {
            out.push(super::no_answer("the device nodes of /dev", why));
            return;
        }
    };
    let user = facts.user.known();
    for node in devices {
        out.extend(of_node(node, facts, user));
    }
    if !facts.amd() || facts.wsl() {
        return;
    }
    let contained = facts.system.known().is_some_and(|s| s.container.is_some());
    let cure = if contained {
        "start the container with --device /dev/kfd --device /dev/dri --group-add video --group-add render"
    } else {
        "sudo modprobe amdgpu, and see `dmesg | grep -e amdgpu -e kfd`; a kernel without CONFIG_HSA_AMD has no /dev/kfd"
    };
    if !devices.iter().any(|d| d.path == KFD) {
        out.push(
            Finding::error(Id::KfdMissing, "there is no /dev/kfd", cure)
                .why("ROCm reaches the card through it; without it torch sees no GPU"),
        );
    }
    if !devices.iter().any(|d| d.path != KFD) {
        out.push(
            Finding::error(Id::RenderMissing, "there is no /dev/dri/renderD*", cure)
                .why("ROCm needs the render node of the card as well"),
        );
    }
}

fn surroundings(facts: &Facts, out: &mut Vec<Finding>) {
    let Some(system) = facts.system.known() else {
        return;
    };
    if system.wsl {
        out.push(
            Finding::note(Id::Wsl, "this is WSL2: there is no telemetry of the GPU")
                .why("no amdgpu, nothing below /sys/class/drm, only /dev/dxg; a run is judged by its process and its output"),
        );
    }
    if let Some(container) = &system.container {
        out.push(
            Finding::note(Id::Container, format!("this is a container ({container})")).why(
                "process numbers of the driver are those of the host and do not match; other cards are hidden",
            ),
        );
    }
}

fn of_node(node: &DeviceNode, facts: &Facts, user: Option<&UserFacts>) -> Option<Finding> {
    let DeviceNode {
        path, group, mode, ..
    } = node;
    if node.accessible {
        return Some(Finding::ok(
            Id::DeviceOk,
            format!("{path} may be opened (group {group}, mode {mode})"),
        ));
    }
    let is_kfd = path == KFD;
    let amd = |pci: &String| facts.amd_cards().any(|c| c.id.0 == *pci);
    let id = if is_kfd {
        Id::KfdNotAccessible
    } else if node.pci.as_ref().is_some_and(|pci| !amd(pci)) {
        // another maker's card: nobody needs it here
        return None;
    } else {
        Id::RenderNotAccessible
    };
    let refused = node.why.as_deref().unwrap_or("refused");
    let name = user.and_then(|u| u.name.as_deref()).unwrap_or("you");
    let what = format!("{path} may not be opened by {name}: {refused}");
    let waits = user.is_some_and(|u| u.not_in_force.contains(group));
    let cure = if waits {
        format!("log in again: {name} is in the group {group} by now, this session is not")
    } else if group.parse::<u32>().is_ok() {
        // a number without a name: the group of the host, seen from a container
        format!("start the container with --group-add {group}")
    } else {
        format!(
            "sudo usermod -aG {group} {}, then log in again",
            user_word(user)
        )
    };
    Some(
        Finding::error(id, what, cure).why(format!(
            "its group is {group}, its mode {mode}; your groups are {}. Judged by its rights: it was not opened",
            user.map_or_else(|| "not known".to_owned(), |u| {
                super::list(u.groups.iter().map(String::as_str), 12)
            })
        )),
    )
}

fn user_word(user: Option<&UserFacts>) -> &str {
    user.and_then(|u| u.name.as_deref()).unwrap_or("$USER")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;

    fn refused(facts: &mut Facts, nth: usize) {
        let Look::Known(devices) = &mut facts.devices else {
            panic!()
        };
        devices[nth].accessible = false;
        devices[nth].why = Some("permission denied".to_owned());
    }

    #[test]
    fn the_cure_names_the_group_of_the_node() {
        let mut facts = healthy();
        refused(&mut facts, 0);
        refused(&mut facts, 1);
        let kfd = found(&facts, Id::KfdNotAccessible);
        assert_eq!(
            kfd.what,
            "/dev/kfd may not be opened by ada: permission denied"
        );
        assert_eq!(
            kfd.cure.as_deref(),
            Some("sudo usermod -aG render ada, then log in again")
        );
        found(&facts, Id::RenderNotAccessible);
        if let Look::Known(user) = &mut facts.user {
            user.not_in_force = vec!["render".to_owned()];
        }
        let kfd = found(&facts, Id::KfdNotAccessible);
        assert!(kfd.cure.unwrap().starts_with("log in again"));
    }

    #[test]
    fn the_node_of_another_maker_is_left_alone() {
        let mut facts = healthy();
        refused(&mut facts, 1);
        if let Look::Known(devices) = &mut facts.devices {
            devices[1].pci = Some("0000:99:00.0".to_owned());
        }
        assert!(absent(&facts, Id::RenderNotAccessible));
    }

    #[test]
    fn missing_nodes_matter_only_with_an_amd_card() {
        let mut facts = healthy();
        facts.devices = Look::Known(Vec::new());
        assert!(
            found(&facts, Id::KfdMissing)
                .cure
                .unwrap()
                .contains("modprobe")
        );
        found(&facts, Id::RenderMissing);
        facts.system_mut().container = Some("docker".to_owned());
        assert!(
            found(&facts, Id::KfdMissing)
                .cure
                .unwrap()
                .contains("--device")
        );
        facts.cards.clear();
        facts.system_mut().amd_devices.clear();
        assert!(absent(&facts, Id::KfdMissing) && absent(&facts, Id::RenderMissing));
    }

    #[test]
    fn a_blocked_look_is_no_missing_node() {
        let mut facts = healthy();
        facts.devices = Look::Unknown("no answer within 5 s".to_owned());
        found(&facts, Id::CheckNoAnswer);
        assert!(absent(&facts, Id::KfdMissing));
    }
}
