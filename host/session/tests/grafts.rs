//! Which grafts Pi has loaded, and which it has passed over (product 5).

use pi_session::Tree;
use pi_session::grafts::{Fate, Grafts, News};
use pi_session::tree::Pushed;

/// `id<parent what`: a message of Pi's, `R2` a receipt of two drafts, `G2` the same glued to half a line of somebody's, `c` a
/// custom entry, `J` a rejoin. What each said.
fn told(drawing: &str) -> (Tree, Grafts, Vec<(String, News)>) {
    let mut tree = Tree::new();
    tree.push(0, br#"{"type":"session","version":3,"id":"s"}"#);
    let (mut grafts, mut news, mut offset) = (Grafts::default(), Vec::new(), 100);
    for word in drawing.split_whitespace() {
        let (place, what) = word.split_once(':').expect("id<parent:what");
        let (id, parent) = place.split_once('<').expect("id<parent");
        let members = match what.split_at(1) {
            ("R" | "G", count) => format!(
                r#""type":"custom","customType":"pi-graft.run","data":{{"batch":"b","plugin":"p","handler":"on-entry","trigger":"t","entries":{count}}}"#
            ),
            ("J", _) => r#""type":"custom","customType":"pi-graft.rejoin""#.to_owned(),
            ("c", _) => r#""type":"custom","customType":"x""#.to_owned(),
            _ => r#""type":"message","message":{"role":"user","content":"hi"}"#.to_owned(),
        };
        let line = format!(r#"{{{members},"id":"{id}","parentId":"{parent}"}}"#);
        if what.starts_with('G') {
            let line = format!(r#"{{"type":"message","id":"hal{line}"#);
            assert_eq!(tree.push(offset, line.as_bytes()), Pushed::Skipped);
            grafts.note_bad(line.as_bytes());
            offset += line.len() as u64 + 1;
            continue;
        }
        let Pushed::Entry(ix) = tree.push(offset, line.as_bytes()) else { panic!("{line}") };
        offset += line.len() as u64 + 1;
        news.push((id.to_owned(), grafts.note(&tree, ix, line.as_bytes())));
    }
    (tree, grafts, news)
}

fn fates(drawing: &str) -> Vec<Fate> {
    told(drawing).1.all().iter().map(|graft| graft.fate).collect()
}

fn of<'a>(news: &'a [(String, News)], id: &str) -> &'a News {
    &news.iter().find(|(of, _)| of == id).expect("it is there").1
}

#[test]
fn a_graft_is_known_once_an_entry_of_pis_hangs_on_it() {
    assert_eq!(fates("a1<:m r1<a1:R1 n1<r1:c"), [Fate::Unproven]);
    let (_, grafts, news) = told("a1<:m r1<a1:R1 n1<r1:c u2<n1:m");
    assert_eq!(grafts.all()[0].fate, Fate::Known);
    assert_eq!(of(&news, "u2"), &News { on_graft: true, known: grafts.all().to_vec(), ..News::default() });
    assert_eq!(fates("a1<:m r1<a1:R1 n1<r1:c r2<n1:R1 n2<r2:c u2<n2:m"), [Fate::Known, Fate::Known]);
}

#[test]
fn a_graft_that_pis_next_entry_goes_beside_is_orphaned() {
    let (_, grafts, news) = told("a1<:m r1<a1:R1 n1<r1:c r2<n1:R1 n2<r2:c u2<a1:m");
    assert_eq!(grafts.all().iter().map(|graft| graft.fate).collect::<Vec<_>>(), [Fate::Orphaned, Fate::Orphaned]);
    let news = of(&news, "u2");
    assert_eq!((news.orphaned.len(), news.branched, news.on_graft), (2, false, false));
}

#[test]
fn branching_off_before_a_known_graft_is_the_users_will() {
    let (_, grafts, news) = told("a1<:m r1<a1:R1 n1<r1:c u2<n1:m u3<a1:m");
    assert_eq!(grafts.all()[0].fate, Fate::Known);
    assert_eq!(of(&news, "u3"), &News { branched: true, ..News::default() });
}

/// The reopened Pi goes on behind the rejoin, on the branch of the line that was passed over.
#[test]
fn a_rejoin_orphans_the_misplaced_graft_and_is_none_of_pis() {
    let (_, grafts, news) = told("a1<:m u2<a1:m r1<a1:R1 n1<r1:c j<u2:J");
    assert_eq!(grafts.all().iter().map(|graft| graft.fate).collect::<Vec<_>>(), [Fate::Orphaned, Fate::Unproven]);
    assert_eq!(of(&news, "j").orphaned.len(), 1);
    let (_, grafts, news) = told("a1<:m u2<a1:m r1<a1:R1 n1<r1:c j<u2:J u3<j:m");
    assert_eq!(grafts.all()[1].fate, Fate::Known);
    assert!(of(&news, "u3").on_graft);
    let (.., news) = told("a1<:m u2<a1:m r1<a1:R1 n1<r1:c j<u2:J u3<u2:m");
    assert_eq!((of(&news, "u3").orphaned.len(), of(&news, "u3").branched), (1, false), "a rejoin is passed over, too");
}

/// More drafts than the receipt speaks of are none of ours, and so is what hangs elsewhere.
#[test]
fn what_is_not_behind_the_receipt_is_pis() {
    assert_eq!(fates("a1<:m r1<a1:R1 n1<r1:c x<n1:c"), [Fate::Known]);
    assert_eq!(fates("a1<:m r1<a1:R2 x<a1:c n1<r1:c"), [Fate::Orphaned], "torn, and somebody wrote");
}

#[test]
fn a_pi_that_says_where_it_stands_has_loaded_what_is_before() {
    let (tree, mut grafts, _) = told("a1<:m r1<a1:R1 n1<r1:c");
    grafts.seen_from(&tree, tree.by_id("n1").expect("there"));
    assert_eq!(grafts.all()[0].fate, Fate::Known);
    assert!(!grafts.is_unproven(tree.by_id("n1").expect("there")));
}

/// Pi's line `u2` came between the check and the write: the file would be opened at the graft, and `u2` be off the branch.
#[test]
fn a_misplaced_graft_names_the_line_that_it_passed_over() {
    let passed = |drawing: &str| {
        let (tree, grafts, _) = told(drawing);
        grafts.passed_over(&tree).map(|ix| tree.id(ix).to_owned())
    };
    assert_eq!(passed("a1<:m r1<a1:R1 n1<r1:c"), None, "well placed");
    assert_eq!(passed("a1<:m u2<a1:m r1<a1:R1 n1<r1:c").as_deref(), Some("u2"));
    assert_eq!(passed("a1<:m u2<a1:m a2<u2:m r1<a1:R1").as_deref(), Some("a2"), "the last of several");
    assert_eq!(passed("a1<:m u2<a1:m r1<a1:R1 n1<r1:c r2<n1:R1 n2<r2:c").as_deref(), Some("u2"));
    assert_eq!(passed("a1<:m u2<a1:m r1<a1:R1 n1<r1:c j<u2:J"), None, "led back");
    assert_eq!(passed("a1<:m u2<a1:m r1<a1:R1 n1<r1:c a2<u2:m j<u2:J").as_deref(), Some("a2"), "misplaced itself");
    assert_eq!(passed("a1<:m u2<a1:m r1<a1:R1 n1<r1:c a2<u2:m"), None, "Pi has written");
    assert_eq!(passed("r1<:R1 n1<r1:c"), None);
}

/// Half a line came right before the write: what is left of the graft hangs on nothing, and the file is led back to what
/// stands before it, be that a graft of ours.
#[test]
fn a_graft_whose_receipt_was_lost_names_the_entry_before_it() {
    let passed = |drawing: &str| {
        let (tree, grafts, _) = told(drawing);
        grafts.passed_over(&tree).map(|ix| tree.id(ix).to_owned())
    };
    assert_eq!(passed("a1<:m r1<a1:G1 n1<r1:c").as_deref(), Some("a1"));
    assert_eq!(passed("a1<:m r1<a1:G2 n1<r1:c n2<n1:c").as_deref(), Some("a1"), "all of its lines");
    assert_eq!(passed("a1<:m u2<a1:m r1<a1:G1 n1<r1:c").as_deref(), Some("u2"), "behind whole lines too");
    let behind = "a1<:m r1<a1:R1 n1<r1:c r2<n1:G1 n2<r2:c";
    assert_eq!(passed(behind).as_deref(), Some("n1"));
    assert_eq!(passed(&format!("{behind} j<n1:J")), None, "led back");
    assert_eq!(passed(&format!("{behind} j<n1:J r3<j:R1 n3<r3:c")), None, "and grafted behind that");
    assert_eq!(fates(&format!("{behind} j<n1:J")), [Fate::Unproven, Fate::Orphaned, Fate::Unproven]);
    assert_eq!(fates(&format!("{behind} j<n1:J u2<j:m")), [Fate::Known, Fate::Orphaned, Fate::Known]);
    assert_eq!(passed(&format!("{behind} u2<n1:m")), None, "Pi has written");
    assert_eq!(passed("a1<:m r1<gone:R1 n1<r1:c").as_deref(), Some("a1"), "the line that the receipt hung on is gone");
    assert_eq!(passed("r1<gone:G1 n1<r1:c"), None);
}

/// Nothing of it is lost: the line that holds the receipt still tells what it was.
#[test]
fn a_graft_whose_receipt_was_lost_tells_what_it_was_made_of() {
    let lines = [
        r#"{"type":"session","version":3,"id":"s"}"#,
        r#"{"type":"message","id":"u1","parentId":null,"message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"mess{"type":"custom","customType":"pi-graft.run","data":{"batch":"b","plugin":"p","handler":"on-entry","trigger":"u1","entries":1},"id":"r1","parentId":"u1"}"#,
        r#"{"type":"custom","customType":"x","id":"n1","parentId":"r1"}"#,
    ];
    let (mut tree, mut grafts, text) = (Tree::new(), Grafts::default(), lines.join("\n"));
    for line in lines {
        let offset = text.find(line).expect("it is there") as u64;
        match tree.push(offset, line.as_bytes()) {
            Pushed::Entry(ix) => drop(grafts.note(&tree, ix, line.as_bytes())),
            _ => grafts.note_bad(line.as_bytes()),
        }
    }
    let graft = grafts.all()[0];
    assert!(graft.is_loose(&tree));
    let (receipt, drafts) = grafts.told(&graft, &tree, &text.into_bytes()).expect("readable").expect("a receipt");
    assert_eq!((receipt.batch.as_str(), drafts), ("b", vec![r#"{"type":"custom","customType":"x"}"#.to_owned()]));
}

#[test]
fn what_a_bridge_had_pi_append_after_a_navigation_is_not_misplaced() {
    let (tree, mut grafts, _) = told("a1<:m u2<a1:m r1<a1:R1 n1<r1:c");
    let seen = grafts.seen_from(&tree, tree.by_id("n1").expect("there"));
    assert_eq!((seen.len(), grafts.passed_over(&tree)), (1, None));
    assert!(grafts.seen_from(&tree, tree.by_id("n1").expect("there")).is_empty(), "it is no news");
}

/// Pi goes on from where it stood: nobody branched off.
#[test]
fn a_misplaced_graft_that_pi_writes_beside_is_an_orphan_and_no_branching() {
    let (.., news) = told("a1<:m u2<a1:m r1<a1:R1 n1<r1:c a2<u2:m");
    assert_eq!((of(&news, "a2").orphaned.len(), of(&news, "a2").branched), (1, false));
}

#[test]
fn a_graft_tells_what_it_was_made_of() {
    let lines = [
        r#"{"type":"session","version":3,"id":"s"}"#,
        r#"{"type":"message","id":"u1","parentId":null,"message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"custom","customType":"pi-graft.run","data":{"batch":"b","plugin":"p","handler":"on-entry","trigger":"u1","entries":2},"id":"r1","parentId":"u1"}"#,
        r#"{"type":"context_edit","targetId":"u1","replacement":null,"id":"e1","parentId":"r1"}"#,
        r#"{"type":"compaction","summary":"s","firstKeptEntryId":"c1","tokensBefore":9,"fromHook":true,"id":"c1","parentId":"e1"}"#,
    ];
    let text = lines.map(|line| format!("{line}\n")).concat();
    let tree = Tree::from_bytes(text.as_bytes());
    let mut grafts = Grafts::default();
    for (ix, line) in tree.all().zip(&lines[1..]) {
        grafts.note(&tree, ix, line.as_bytes());
    }
    let graft = grafts.all()[0];
    let (receipt, drafts) = graft.told(&tree, &text.into_bytes()).expect("readable").expect("a receipt");
    assert_eq!((receipt.batch.as_str(), receipt.trigger.as_str()), ("b", "u1"));
    let (edit, compaction) = (
        r#"{"type":"context_edit","targetId":"u1","replacement":null}"#,
        r#"{"type":"compaction","summary":"s","firstKeptEntryId":null}"#,
    );
    assert_eq!(drafts, [edit, compaction], "what the host counts is not among it");
    assert_eq!(graft.targets(&tree).map(|ix| tree.id(ix)).collect::<Vec<_>>(), ["u1"]);
    assert_eq!(graft.bytes(&tree), lines[2..].iter().map(|line| line.len() as u64).sum::<u64>());
}
