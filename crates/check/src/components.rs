//! Strongly connected components of a graph in reverse topological order (Tarjan's algorithm, without recursion).

/// The component of each of `count` nodes. `next` returns the n-th successor of a node. Nodes that reach each other share a
/// number; otherwise a node has a larger number than its successors. Takes time linear in the number of edges.
pub fn components(count: usize, next: impl Fn(usize, usize) -> Option<usize>) -> Vec<usize> {
    let mut search =
        Search { found: vec![None; count], low: vec![0; count], component: vec![None; count], ..Search::default() };
    for start in 0..count {
        search.visit(start, &next);
    }
    search.component.into_iter().map(Option::unwrap_or_default).collect()
}

#[derive(Default)]
struct Search {
    found: Vec<Option<usize>>,
    /// The earliest node known to be reachable from each node.
    low: Vec<usize>,
    component: Vec<Option<usize>>,
    open: Vec<usize>,
    clock: usize,
    closed: usize,
}

impl Search {
    fn visit(&mut self, start: usize, next: &impl Fn(usize, usize) -> Option<usize>) {
        if !self.enter(start) {
            return;
        }
        let mut path = vec![(start, 0)];
        while let Some((node, number)) = path.last_mut() {
            let node = *node;
            if let Some(to) = next(node, *number) {
                *number += 1;
                if self.enter(to) {
                    path.push((to, 0));
                } else if self.component.get(to) == Some(&None) {
                    let found = self.found.get(to).copied().flatten().unwrap_or_default();
                    self.lower(node, found);
                }
                continue;
            }
            path.pop();
            let low = self.low.get(node).copied().unwrap_or_default();
            if let Some((parent, _)) = path.last() {
                self.lower(*parent, low);
            }
            if self.found.get(node) == Some(&Some(low)) {
                self.close(node);
            }
        }
    }

    fn enter(&mut self, node: usize) -> bool {
        let Some(found) = self.found.get_mut(node).filter(|found| found.is_none()) else { return false };
        *found = Some(self.clock);
        self.low.iter_mut().skip(node).take(1).for_each(|low| *low = self.clock);
        self.clock += 1;
        self.open.push(node);
        true
    }

    fn lower(&mut self, node: usize, to: usize) {
        self.low.iter_mut().skip(node).take(1).for_each(|low| *low = to.min(*low));
    }

    fn close(&mut self, root: usize) {
        while let Some(node) = self.open.pop() {
            self.component.iter_mut().skip(node).take(1).for_each(|component| *component = Some(self.closed));
            if node == root {
                break;
            }
        }
        self.closed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components_of(edges: &[&[usize]]) -> Vec<usize> {
        components(edges.len(), |node, number| edges[node].get(number).copied())
    }

    #[test]
    fn a_node_has_a_larger_number_than_its_successors_and_loops_share_one() {
        assert_eq!(components_of(&[&[1], &[2], &[]]), [2, 1, 0]);
        assert_eq!(components_of(&[&[1], &[2, 3], &[1], &[]]), [2, 1, 1, 0]);
        assert_eq!(components_of(&[&[0], &[]]), [0, 1]);
        assert_eq!(components_of(&[&[1], &[2], &[0]]), [0, 0, 0]);
        assert_eq!(components_of(&[]), [0; 0]);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_nodes_needs_no_deep_stack() {
        let count = 100_000;
        let numbers = components(count, |node, number| (number == 0 && node + 1 < count).then_some(node + 1));
        assert_eq!((numbers[0], numbers[count - 1]), (count - 1, 0));
    }
}
