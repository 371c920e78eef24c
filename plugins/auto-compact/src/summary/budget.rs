//! Who gets how much room, and what is said in it.
use super::sections::Item;
use super::text;

/// Less room than this is not worth a clipped item.
const SCRAP: usize = 64;

/// Shares out `total` by weight; what one does not need goes to the others.
pub fn allot(needs: &[usize], weights: &[usize], total: usize) -> Vec<usize> {
    let mut shares = vec![0; needs.len()];
    let mut room = total;
    loop {
        let hungry = |at: &usize| shares[*at] < needs[*at];
        let open: Vec<_> = (0..needs.len()).filter(hungry).collect();
        let weight: usize = open.iter().map(|at| weights[*at]).sum();
        let mut given = 0;
        for at in open {
            let share = (room * weights[at] / weight.max(1)).min(needs[at] - shares[at]);
            shares[at] += share;
            given += share;
        }
        if given == 0 {
            return shares;
        }
        room -= given;
    }
}

/// What an item costs, with the mark before it and the line breaks in and behind it.
pub fn cost(text: &str, mark: usize) -> usize {
    mark + text.len() + 1 + 2 * text.matches('\n').count()
}

/// What fits into the room, in its own order, and the room that is left. What matters more goes first, then what is
/// newer; but what stood in the summary before has a claim to three eighths of the room.
pub fn fill(items: &[Item], mark: usize, room: usize) -> (Vec<String>, usize) {
    let mut order: Vec<_> = (0..items.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((items[*at].class, *at)));
    let mut filling = Filling { items, mark, room, taken: vec![None; items.len()] };
    let claimed = room / 8 * 3;
    for at in order.iter().filter(|at| items[**at].fresh) {
        if filling.room >= claimed + cost(&items[*at].text, mark) {
            filling.take(*at);
        }
    }
    order.iter().filter(|at| !items[**at].fresh).for_each(|at| filling.take(*at));
    order.iter().for_each(|at| filling.take(*at));
    if let Some(at) = order.iter().find(|at| filling.taken[**at].is_none()) {
        filling.squeeze(*at);
    }
    let room = filling.room;
    (filling.taken.into_iter().flatten().collect(), room)
}

struct Filling<'a> {
    items: &'a [Item],
    mark: usize,
    room: usize,
    taken: Vec<Option<String>>,
}

impl Filling<'_> {
    fn take(&mut self, at: usize) {
        let cost = cost(&self.items[at].text, self.mark);
        if self.taken[at].is_none() && cost <= self.room {
            self.room -= cost;
            self.taken[at] = Some(self.items[at].text.clone());
        }
    }

    /// The first that did not fit, clipped into what is left.
    fn squeeze(&mut self, at: usize) {
        let text = &self.items[at].text;
        let around = cost(text, self.mark) - text.len();
        let room = self.room.saturating_sub(around);
        if room >= SCRAP {
            let text = text::clip(text, room).into_owned();
            self.room = self.room.saturating_sub(cost(&text, self.mark));
            self.taken[at] = Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str, class: u8, fresh: bool) -> Item {
        Item::new(text.into(), class, fresh)
    }

    #[test]
    fn room_that_one_does_not_need_goes_to_the_others() {
        assert_eq!(allot(&[10, 500, 500], &[50, 25, 25], 210), [10, 100, 100]);
        assert_eq!(allot(&[0, 7], &[1, 1], 100), [0, 7]);
        assert_eq!(allot(&[], &[], 5), [0; 0]);
    }

    #[test]
    fn what_matters_comes_first_and_the_order_stays() {
        let items = [item("aaaa", 0, true), item("bbbb", 9, true), item("cccc", 5, true)];
        assert_eq!(fill(&items, 2, 14), (vec!["bbbb".to_owned(), "cccc".into()], 0));
    }

    #[test]
    fn the_new_does_not_push_all_of_the_old_out() {
        let items: Vec<_> = (0..20).map(|n| item(&format!("item {n:02}"), 1, n >= 10)).collect();
        let (told, _) = fill(&items, 2, 100);
        let old = told.iter().filter(|text| text.as_str() < "item 10").count();
        assert_eq!((told.len(), old), (10, 4));
    }
}
