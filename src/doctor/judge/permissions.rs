//! Device nodes and the rights to open them.

use crate::doctor::facts::{DeviceNode, Facts, Look, UserFacts};
use crate::doctor::finding::{Finding, Id};

const KFD: &str = "/dev/kfd";
/// The group may read and write.
const GROUP_MAY: u32 = 0o060;

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
    let cure = if contained(facts) {
        "start the container with --device /dev/kfd --device /dev/dri --group-add video --group-add render"
    } else {
        "sudo modprobe amdgpu, and see `dmesg | grep -e amdgpu -e kfd`; a kernel without CONFIG_HSA_AMD has no /dev/kfd"
    };
    // a card that amdgpu does not hold has no node to miss, and is told with the cards
    let needed = facts.rocm_matters() && facts.amd_cards().next().is_some();
    let missing = |id, what: &str, why: &str| graded(needed, id, what.to_owned(), cure).why(why);
    if !devices.iter().any(|d| d.path == KFD) {
        out.push(missing(
            Id::KfdMissing,
            "there is no /dev/kfd",
            "ROCm reaches the card through it; without it torch for ROCm sees no GPU",
        ));
    }
    if !devices.iter().any(|d| d.path != KFD) {
        out.push(missing(
            Id::RenderMissing,
            "there is no /dev/dri/renderD*",
            "ROCm needs the render node of the card as well",
        ));
    }
}

fn contained(facts: &Facts) -> bool {
    facts.system.known().is_some_and(|s| s.container.is_some())
}

/// An error where a run needs it, else a note.
fn graded(needed: bool, id: Id, what: String, cure: impl Into<String>) -> Finding {
    if needed {
        Finding::error(id, what, cure)
    } else {
        Finding::note(id, what).cure(cure)
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
    let (id, needed) = if path == KFD {
        (Id::KfdNotAccessible, facts.rocm_matters())
    } else {
        // of a card that is not AMD's nobody needs it here
        if let Some(pci) = &node.pci
            && !facts.amd_cards().any(|c| c.id.0 == *pci)
        {
            return None;
        }
        (Id::RenderNotAccessible, render_needed(node, facts))
    };
    let refused = node.why.as_deref().unwrap_or("refused");
    let name = user.and_then(|u| u.name.as_deref()).unwrap_or("you");
    let what = format!("{path} may not be opened by {name}: {refused}");
    let groups = user.map_or_else(
        || "not known".to_owned(),
        |u| super::list(u.groups.iter().map(String::as_str), 12),
    );
    Some(
        graded(needed, id, what, cure(node, contained(facts), user)).why(format!(
            "its group is {group}, its mode {mode}; your groups are {groups}. Judged by its rights: it was not opened"
        )),
    )
}

/// The node of the card that a run would use, as far as that is known.
fn render_needed(node: &DeviceNode, facts: &Facts) -> bool {
    let supervised = facts.supervised_amd().map(|c| &c.id.0);
    match (supervised, &node.pci) {
        (Some(card), Some(pci)) => card == pci,
        _ => facts.rocm_matters(),
    }
}

/// What opens the node to the user. To join its group is a cure only where the group
/// may read and write, and is not the one of the superuser.
fn cure(node: &DeviceNode, contained: bool, user: Option<&UserFacts>) -> String {
    let DeviceNode { path, group, .. } = node;
    let mode = u32::from_str_radix(&node.mode, 8).unwrap_or(0);
    let has = |groups: &[String]| groups.contains(group);
    let root = group == "root" || group == "0";
    if mode & GROUP_MAY != GROUP_MAY || root {
        return open_to_render(path, contained, user);
    }
    if user.is_some_and(|u| has(&u.groups)) {
        return format!(
            "the group {group} may open it and you are in it, so something else refuses: see `getfacl {path}`, and the device rules of a container or service"
        );
    }
    if user.is_some_and(|u| has(&u.not_in_force)) {
        let name = user.and_then(|u| u.name.as_deref()).unwrap_or("the user");
        return format!(
            "log out and in again: {name} is in the group {group} by now, this session is not"
        );
    }
    if group.parse::<u32>().is_ok() {
        // a number without a name: the group of the host, seen from a container
        return format!("start the container with --group-add {group}");
    }
    join(group, user)
}

fn join(group: &str, user: Option<&UserFacts>) -> String {
    let user = user.and_then(|u| u.name.as_deref()).unwrap_or("$USER");
    format!("sudo usermod -aG {group} {user}, then log out and in again")
}

/// The rights of the node itself are wrong: udev sets them.
fn open_to_render(path: &str, contained: bool, user: Option<&UserFacts>) -> String {
    if contained {
        return format!(
            "no group that you could join opens {path}: let the host give it to the group render (mode 0660), and start the container with --group-add of that group's number there"
        );
    }
    let kernel = if path == KFD { "kfd" } else { "renderD*" };
    let member = user.is_some_and(|u| u.groups.iter().any(|g| g == "render"));
    let joined = if member {
        String::new()
    } else {
        format!("; {}", join("render", user))
    };
    format!(
        "give the node to the group render: a line KERNEL==\"{kernel}\", GROUP=\"render\", MODE=\"0660\" in /etc/udev/rules.d/70-amdgpu.rules, then sudo udevadm control --reload && sudo udevadm trigger{joined}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{APU, CARD, absent, beside_an_apu, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::model::Vendor;

    fn refused(facts: &mut Facts, nth: usize) {
        let Look::Known(devices) = &mut facts.devices else {
            panic!()
        };
        devices[nth].accessible = false;
        devices[nth].why = Some("permission denied".to_owned());
    }

    /// The user is in these groups, and given those beside them.
    fn groups(facts: &mut Facts, in_force: &[&str], not_in_force: &[&str]) {
        let Look::Known(user) = &mut facts.user else {
            panic!()
        };
        user.groups = in_force.iter().map(|g| (*g).to_owned()).collect();
        user.not_in_force = not_in_force.iter().map(|g| (*g).to_owned()).collect();
    }

    /// What is advised where `/dev/kfd` has this group and mode.
    fn advice(facts: &Facts, group: &str, mode: &str) -> String {
        let mut facts = facts.clone();
        refused(&mut facts, 0);
        if let Look::Known(devices) = &mut facts.devices {
            devices[0].group = group.to_owned();
            devices[0].mode = mode.to_owned();
        }
        found(&facts, Id::KfdNotAccessible).cure.unwrap()
    }

    #[test]
    fn the_cure_names_the_group_of_the_node() {
        let mut facts = healthy();
        refused(&mut facts, 0);
        refused(&mut facts, 1);
        groups(&mut facts, &["ada"], &[]);
        let kfd = found(&facts, Id::KfdNotAccessible);
        assert_eq!(
            kfd.what,
            "/dev/kfd may not be opened by ada: permission denied"
        );
        assert_eq!(
            kfd.cure.as_deref(),
            Some("sudo usermod -aG render ada, then log out and in again")
        );
        found(&facts, Id::RenderNotAccessible);
        groups(&mut facts, &["ada"], &["render"]);
        let kfd = found(&facts, Id::KfdNotAccessible);
        assert!(kfd.cure.unwrap().starts_with("log out and in again"));
    }

    #[test]
    fn to_join_a_group_is_no_cure_where_it_opens_nothing() {
        let mut facts = healthy();
        groups(&mut facts, &["ada"], &["root"]);
        for (group, mode) in [
            ("root", "0600"),
            ("root", "0660"),
            ("0", "0660"),
            ("render", "0600"),
            ("render", "0640"),
            ("render", "0000"),
        ] {
            let cure = advice(&facts, group, mode);
            assert!(cure.contains("udev") && cure.contains("\"kfd\""), "{cure}");
            assert!(
                !cure.contains("-aG root") && !cure.contains("-aG 0"),
                "{cure}"
            );
            assert!(cure.ends_with("usermod -aG render ada, then log out and in again"));
        }
        facts.system_mut().container = Some("docker".to_owned());
        let cure = advice(&facts, "root", "0600");
        assert!(
            !cure.contains("usermod") && cure.contains("the host"),
            "{cure}"
        );
        assert_eq!(
            advice(&facts, "993", "0660"),
            "start the container with --group-add 993"
        );
        let member = advice(&healthy(), "render", "0660");
        assert!(
            !member.contains("usermod") && member.contains("getfacl"),
            "{member}"
        );
        assert!(
            !advice(&healthy(), "root", "0600").contains("usermod"),
            "in it already"
        );
    }

    #[test]
    fn rights_of_rocm_are_errors_only_where_rocm_matters() {
        let mut facts = healthy();
        facts.answer_mut().torch.as_mut().unwrap().hip = None;
        facts.answer_mut().torch.as_mut().unwrap().cuda = Some("12.8".to_owned());
        let mut rtx = facts.cards[0].clone();
        rtx.vendor = Vendor::Nvidia;
        rtx.id = crate::model::GpuId("0000:01:00.0".to_owned());
        facts.supervised = Some(rtx.id.clone());
        facts.cards.insert(0, rtx);
        refused(&mut facts, 0);
        refused(&mut facts, 1);
        groups(&mut facts, &["ada"], &[]);
        for id in [Id::KfdNotAccessible, Id::RenderNotAccessible] {
            let f = found(&facts, id);
            assert_eq!(f.severity, Severity::Note);
            assert!(f.cure.is_some());
        }
        let mut missing = facts.clone();
        missing.devices = Look::Known(Vec::new());
        assert_eq!(found(&missing, Id::KfdMissing).severity, Severity::Note);
        facts.answer_mut().torch.as_mut().unwrap().hip = Some("6.4".to_owned());
        assert_eq!(
            found(&facts, Id::KfdNotAccessible).severity,
            Severity::Error
        );
    }

    #[test]
    fn the_render_node_of_an_apu_beside_the_card_is_a_note() {
        let mut facts = beside_an_apu(false);
        refused(&mut facts, 1);
        let of = |facts: &mut Facts, pci: &str| {
            if let Look::Known(devices) = &mut facts.devices {
                devices[1].pci = Some(pci.to_owned());
            }
            found(facts, Id::RenderNotAccessible).severity
        };
        assert_eq!(of(&mut facts, APU), Severity::Note);
        assert_eq!(of(&mut facts, CARD), Severity::Error);
    }

    #[test]
    fn a_card_that_amdgpu_does_not_hold_misses_no_node() {
        for driver in [None, Some("radeon".to_owned())] {
            let mut facts = healthy();
            facts.devices = Look::Known(Vec::new());
            facts.cards.clear();
            facts.supervised = None;
            facts.system_mut().amd_devices[0].driver = driver;
            assert_eq!(found(&facts, Id::KfdMissing).severity, Severity::Note);
            assert_eq!(found(&facts, Id::RenderMissing).severity, Severity::Note);
        }
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
