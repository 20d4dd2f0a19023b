//! The orders, with the faults of real data, and what an analysis has to find in them.

use std::collections::BTreeMap;
use std::fmt::Write;

const ORDERS: usize = 20_000;

const REGIONS: [&str; 5] = ["east", "islands", "north", "south", "west"];

pub struct Order {
    month: usize,
    region: &'static str,
    channel: &'static str,
    /// None: a text stands there, from which no number can be read.
    units: Option<u64>,
    /// In cents. None: there is a gap.
    price: Option<u64>,
    minutes: u64,
}

/// The same orders in each run.
pub fn orders() -> Vec<Order> {
    let mut random = fastrand::Rng::with_seed(20_000);
    let order = |number: usize| {
        let units = random.u64(1..=12);
        let price = if number == 12_345 { 999_999_900 } else { random.u64(500..10_000) };
        Order {
            month: 1 + number % 12,
            region: REGIONS[random.usize(..REGIONS.len())],
            channel: if random.u8(..3) == 0 { "shop" } else { "web" },
            units: (number % 400 != 7).then_some(units),
            price: (!number.is_multiple_of(37)).then_some(price),
            minutes: 5 + random.u64(..120) + 3 * units,
        }
    };
    (0..ORDERS).map(order).collect()
}

pub fn csv(orders: &[Order]) -> String {
    let mut text = "order,month,region,channel,units,price,minutes\n".to_owned();
    for (number, order) in orders.iter().enumerate() {
        let units = order.units.map_or("a dozen".to_owned(), |units| units.to_string());
        let price = order.price.map_or(String::new(), |cents| format!("{}.{:02}", cents / 100, cents % 100));
        let Order { month, region, channel, minutes, .. } = order;
        writeln!(text, "{number},{month},{region},{channel},{units},{price},{minutes}").unwrap();
    }
    text
}

/// What the cells of the analysis print.
pub struct Findings {
    /// Orders without a price.
    pub gaps: usize,
    /// Orders without a price or without a number of units.
    pub incomplete: usize,
    /// Orders with a price that cannot be.
    pub impossible: usize,
    /// The number of orders, the sum and the median of each region, as pandas writes a table.
    pub totals: String,
    /// The mean of the minutes of each channel.
    pub channels: String,
    /// The sum of each month.
    pub months: String,
}

impl Findings {
    pub fn of(orders: &[Order]) -> Self {
        let complete: Vec<(&Order, u64, u64)> =
            orders.iter().filter_map(|order| Some((order, order.units?, order.price?))).collect();
        let clean: Vec<(&Order, u64)> = complete
            .iter()
            .filter(|(_, _, price)| *price < 100_000)
            .map(|(order, units, price)| (*order, units * price))
            .collect();
        let (mut regions, mut channels) = (BTreeMap::<_, Vec<u64>>::new(), BTreeMap::<_, (u64, u64)>::new());
        let mut months = [0; 12];
        for (order, cents) in &clean {
            regions.entry(order.region).or_default().push(*cents);
            let (count, minutes) = channels.entry(order.channel).or_default();
            (*count, *minutes) = (*count + 1, *minutes + order.minutes);
            months[order.month - 1] += cents;
        }
        let mut totals = "region,count,sum,median\n".to_owned();
        for (region, mut cents) in regions {
            cents.sort_unstable();
            let (count, sum) = (cents.len(), cents.iter().sum::<u64>());
            let twice_the_median = cents[(count - 1) / 2] + cents[count / 2];
            let half = if twice_the_median % 2 == 1 { 5 } else { 0 };
            writeln!(totals, "{region},{count},{sum},{}.{half}", twice_the_median / 2).unwrap();
        }
        let mean = |(channel, (count, minutes))| format!("{channel} {:.6}\n", minutes as f64 / count as f64);
        Self {
            gaps: orders.iter().filter(|order| order.price.is_none()).count(),
            incomplete: orders.len() - complete.len(),
            impossible: complete.len() - clean.len(),
            totals,
            channels: channels.into_iter().map(mean).collect(),
            months: months.map(|cents: u64| cents.to_string()).join(" ") + "\n",
        }
    }
}
