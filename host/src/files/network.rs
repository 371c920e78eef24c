//! Which directories are on a network file system. `O_APPEND` is not safe between hosts, and what another host writes gives
//! no event here (product.md section 6).
//!
//! What counts is the type that the system gives for a mount ([`KINDS`]). FUSE is among them, since sshfs and most clouds
//! are that, so a local FUSE mount counts too. Where a system gives no such type (it is asked on Linux alone), nothing does.

use std::path::Path;

/// The types of file systems that other hosts may write to, by their number in `statfs`.
pub const KINDS: [(u32, &str); 22] = [
    (0x0000_6969, "NFS"),
    (0x0000_517B, "SMB"),
    (0xFE53_4D42, "SMB 2"),
    (0xFF53_4D42, "CIFS"),
    (0x6573_5546, "FUSE (such as sshfs)"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS (kernel)"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x0000_564C, "NCP"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0xAAD7_AAEA, "PanFS"),
    (0xBEEF_DEAD, "StorNext"),
    (0x6163_6673, "ACFS"),
    (0xBACB_ACBC, "a VMware shared folder"),
    (0x786F_4256, "a VirtualBox shared folder"),
    (0x7C7C_6673, "a Parallels shared folder"),
];

/// The kind of network file system that `dir` is on; none if it is on a local one, or if that cannot be told.
#[must_use]
pub fn network(dir: &Path) -> Option<&'static str> {
    kind(number(dir)?)
}

/// The kind with this number.
#[must_use]
pub fn kind(number: u32) -> Option<&'static str> {
    KINDS.iter().find(|(of, _)| *of == number).map(|(_, name)| *name)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn number(dir: &Path) -> Option<u32> {
    // 32 bits, in a C type that is not the same on all machines.
    rustix::fs::statfs(dir).ok().map(|stat| stat.f_type as u32)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn number(_dir: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_that_other_hosts_write_to_are_told_from_local_ones() {
        assert_eq!(kind(0x6969), Some("NFS"));
        assert_eq!(kind(0x6573_5546), Some("FUSE (such as sshfs)"));
        for local in [0xEF53_u32, 0x0102_1994, 0x9123_683E, 0x5846_5342, 0x794C_7630] {
            assert_eq!(kind(local), None, "ext4, tmpfs, btrfs, xfs, overlay: {local:x}");
        }
    }
}
