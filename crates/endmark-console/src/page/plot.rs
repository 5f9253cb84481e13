//! Draws plots as SVG: scales, ticks, stacked columns, sparklines and bars. All functions are pure.
//!
//! The Content-Security-Policy forbids inline styles, so sizes are attributes: heights in pixels, widths in
//! percent.

use maud::{Markup, html};

/// Maximum number of steps of an axis.
const MAX_STEPS: f64 = 5.0;

/// Space above the highest tick for the labels of columns, and space below the base line, in pixels.
const TOP_MARGIN_PX: f64 = 40.0;
const BOTTOM_MARGIN_PX: f64 = 42.0;

/// Gap between two segments of a column, and minimum height of a segment that is not empty, in pixels.
const SEGMENT_GAP_PX: f64 = 1.0;
const MIN_SEGMENT_HEIGHT_PX: f64 = 1.5;

/// Returns the ticks of an axis from 0 to at least `max`. All ticks are integers. The axis has at most five steps of
/// 1, 2, 2.5 or 5 × 10ⁿ.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a plot has no 2^53 of anything"
)]
pub(super) fn ticks(max: u64) -> Vec<u64> {
    let least = (max.max(1) as f64 / MAX_STEPS).max(1.0);
    let magnitude = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| *step >= least - 1e-9 && (step.fract() == 0.0))
        .unwrap_or(10.0 * magnitude) as u64;
    let steps = max.max(1).div_ceil(step.max(1));
    (0..=steps).map(|at| at * step).collect()
}

/// A segment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// The CSS class that sets the colour.
    pub class: &'static str,
    /// The amount that the segment represents.
    pub amount: u64,
}

/// A column in a plot.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    /// The label below the column: one or two lines.
    pub label: [String; 2],
    /// A description of the column with all its numbers.
    pub title: String,
    /// The segments, from the bottom up.
    pub segments: Vec<Segment>,
    /// The label above the column.
    pub total: String,
    /// The number of missing replies, and the words after it, which a narrow plot omits.
    pub missing: Option<(u64, &'static str)>,
    /// Whether the column is the current period, which has not ended.
    pub is_current_period: bool,
}

/// A plot of columns.
pub(super) struct ColumnPlot<'a> {
    /// One sentence that describes the plot.
    pub label: &'a str,
    /// The columns, from left to right.
    pub columns: &'a [Column],
    /// The height from the base line to the highest tick, in pixels.
    pub height: f64,
    /// Formats the label of a tick.
    pub format_tick: fn(u64) -> String,
    /// Minimum value of the end of the axis.
    pub min_axis_end: u64,
}

/// Converts amounts to pixels.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    /// The ticks.
    pub ticks: Vec<u64>,
    height: f64,
}

impl Scale {
    /// Returns a scale from 0 to the first tick that is not below `max`.
    pub(super) fn new(max: u64, height: f64) -> Self {
        Self { ticks: ticks(max), height }
    }

    /// Returns the distance of an amount from the top, in pixels.
    #[expect(clippy::cast_precision_loss, reason = "pixels are coarser")]
    pub(super) fn y(&self, amount: u64) -> f64 {
        let top = self.ticks.last().copied().unwrap_or(1).max(1);
        TOP_MARGIN_PX + self.height * (1.0 - amount as f64 / top as f64)
    }
}

/// Formats a coordinate in pixels.
fn format_pixels(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// Formats a share of the width in percent.
pub(super) fn format_percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

impl ColumnPlot<'_> {
    /// Returns the scale of the plot.
    pub(super) fn scale(&self) -> Scale {
        let highest =
            self.columns.iter().map(|column| column.segments.iter().map(|part| part.amount).sum()).max();
        Scale::new(highest.unwrap_or(0).max(self.min_axis_end), self.height)
    }

    /// Returns the horizontal centre and the width of a column's space, in percent.
    #[expect(clippy::cast_precision_loss, reason = "a plot has few columns")]
    pub(super) fn column_position(&self, at: usize) -> (f64, f64) {
        let width = 100.0 / self.columns.len().max(1) as f64;
        (width * (at as f64 + 0.5), width)
    }

    /// Draws the plot, with `over` on top of the columns.
    pub(super) fn draw(&self, over: &Markup) -> Markup {
        let scale = self.scale();
        let whole = format_pixels(TOP_MARGIN_PX + self.height + BOTTOM_MARGIN_PX);
        let widest =
            scale.ticks.iter().map(|tick| (self.format_tick)(*tick).chars().count()).max().unwrap_or(1);
        let axis_width = 14 + 8 * widest;
        let base = TOP_MARGIN_PX + self.height;
        html! {
            div.plot {
                svg width=(axis_width) height=(whole) aria-hidden="true" {
                    @for tick in &scale.ticks {
                        text x=(axis_width - 12) y=(format_pixels(scale.y(*tick) + 4.0)) text-anchor="end" { ((self.format_tick)(*tick)) }
                    }
                }
                svg width="100%" height=(whole) role="img" aria-label=(self.label) {
                    @for tick in &scale.ticks {
                        @let class = if *tick == 0 { "baseline" } else { "gridline" };
                        line class=(class) x1="0" x2="100%" y1=(format_pixels(scale.y(*tick))) y2=(format_pixels(scale.y(*tick))) {}
                    }
                    @for (at, column) in self.columns.iter().enumerate() { (self.draw_column(&scale, at, column, base)) }
                    (over)
                }
            }
        }
    }

    fn draw_column(&self, scale: &Scale, at: usize, column: &Column, base: f64) -> Markup {
        let (centre, width) = self.column_position(at);
        let thick = width * if self.columns.len() > 14 { 0.78 } else { 0.56 };
        let (parts, top) = stack_segments(&column.segments, scale, base);
        let label_y = base + 20.0;
        html! {
            g {
                title { (column.title) }
                rect.hit x=(format_percent(centre - width / 2.0)) y=(format_pixels(TOP_MARGIN_PX)) width=(format_percent(width)) height=(format_pixels(self.height)) {}
                @for (class, y, height) in parts {
                    rect class={ "seg " (class) } x=(format_percent(centre - thick / 2.0)) y=(format_pixels(y)) width=(format_percent(thick)) height=(format_pixels(height)) {}
                }
                @if !column.total.is_empty() { text.total x=(format_percent(centre)) y=(format_pixels(top - 7.0)) text-anchor="middle" { (column.total) } }
                @if let Some((missing, words)) = column.missing {
                    text.short x=(format_percent(centre)) y=(format_pixels(top - 22.0)) text-anchor="middle" { (missing) tspan.wide { " " (words) } }
                }
                text class=[column.is_current_period.then_some("today")] x=(format_percent(centre)) y=(format_pixels(label_y)) text-anchor="middle" {
                    (column.label[0])
                    @if !column.label[1].is_empty() { tspan x=(format_percent(centre)) dy="15" { (column.label[1]) } }
                }
            }
        }
    }
}

/// Returns the class, the top and the height of each segment that is not empty, and the top of the whole
/// column.
fn stack_segments(segments: &[Segment], scale: &Scale, base: f64) -> (Vec<(&'static str, f64, f64)>, f64) {
    let (mut parts, mut below, mut top) = (Vec::new(), 0, base);
    for segment in segments.iter().filter(|segment| segment.amount > 0) {
        below += segment.amount;
        let gap = if parts.is_empty() { 0.0 } else { SEGMENT_GAP_PX };
        let y = scale.y(below).min(top - gap - MIN_SEGMENT_HEIGHT_PX);
        parts.push((segment.class, y, top - gap - y));
        top = y;
    }
    (parts, top)
}

/// Draws the values of a span and of the preceding span as a sparkline. Omits a span with fewer than three
/// values.
pub(super) fn draw_sparkline(values: &[f64], before: &[f64], label: &str) -> Markup {
    if values.len() < 3 {
        return html! {};
    }
    let all = || values.iter().chain(before);
    let low = all().copied().fold(f64::INFINITY, f64::min);
    let high = all().copied().fold(f64::NEG_INFINITY, f64::max);
    let now = points(values, low, high);
    let (last_x, last_y) = now.last().copied().unwrap_or((0.0, 0.0));
    html! {
        svg.spark viewBox="0 0 84 30" role="img" aria-label=(label) {
            @if before.len() > 2 { polyline.before points=(path(&points(before, low, high))) {} }
            polyline points=(path(&now)) {}
            circle cx=(format_pixels(last_x)) cy=(format_pixels(last_y)) r="2.5" {}
        }
    }
}

/// Returns the coordinates of values in a sparkline of 84 by 30 pixels.
#[expect(clippy::cast_precision_loss, reason = "a sparkline has few values")]
fn points(values: &[f64], low: f64, high: f64) -> Vec<(f64, f64)> {
    let step = 78.0 / (values.len().max(2) - 1) as f64;
    let y = |value: f64| if high > low { 26.0 - 22.0 * (value - low) / (high - low) } else { 15.0 };
    values.iter().enumerate().map(|(at, value)| (2.0 + step * at as f64, y(*value))).collect()
}

fn path(points: &[(f64, f64)]) -> String {
    let points: Vec<String> =
        points.iter().map(|(x, y)| format!("{},{}", format_pixels(*x), format_pixels(*y))).collect();
    points.join(" ")
}

/// A bar with the spent, the held and the forecast amount, in percent of its length.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bar<'a> {
    pub class: &'a str,
    pub spent: f64,
    pub held: f64,
    /// The end of the forecast amount.
    pub forecast: Option<f64>,
    pub ticks: &'a [f64],
    /// Whether the ticks are drawn faintly.
    pub has_faint_ticks: bool,
    pub height: u32,
}

impl Bar<'_> {
    /// Draws the bar.
    pub(super) fn draw(&self, label: &str) -> Markup {
        let spent = self.spent.clamp(0.0, 100.0);
        let held = self.held.clamp(0.0, 100.0 - spent);
        let until =
            self.forecast.map(|forecast| forecast.clamp(0.0, 100.0)).filter(|until| *until > spent + held);
        let middle = format_pixels(f64::from(self.height) / 2.0);
        html! {
            svg.bar role="img" aria-label=(label) {
                rect.track x="0" y="0.5" width="100%" height=(self.height.saturating_sub(1)) rx="1.5" {}
                @if spent > 0.0 { rect class={ "seg " (self.class) } width=(format_percent(spent)) height=(self.height) rx="1.5" {} }
                @if held > 0.0 { rect class={ "held " (self.class) } x=(format_percent(spent)) width=(format_percent(held)) height=(self.height) {} }
                @if let Some(until) = until {
                    line class={ "forecast " (self.class) } x1=(format_percent(spent + held)) x2=(format_percent(until)) y1=(middle) y2=(middle) {}
                }
                @for tick in self.ticks {
                    line class=(if self.has_faint_ticks { "tick faint" } else { "tick" }) x1=(format_percent(*tick)) x2=(format_percent(*tick)) y1="-3"
                        y2=(self.height + 3) {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_at_0_and_has_few_round_steps() {
        for (max, expected) in [
            (0, vec![0, 1]),
            (1, vec![0, 1]),
            (3, vec![0, 1, 2, 3]),
            (7, vec![0, 2, 4, 6, 8]),
            (12, vec![0, 5, 10, 15]),
            (95, vec![0, 20, 40, 60, 80, 100]),
            (120, vec![0, 25, 50, 75, 100, 125]),
            (200_000, vec![0, 50_000, 100_000, 150_000, 200_000]),
        ] {
            let ticks = ticks(max);
            assert!(ticks.len() <= 6 && ticks[0] == 0 && *ticks.last().unwrap() >= max, "{max}: {ticks:?}");
            assert!(ticks.len() == expected.len() || max == 200_000, "{max}: {ticks:?}");
        }
        assert_eq!(ticks(95), [0, 20, 40, 60, 80, 100]);
        assert_eq!(ticks(12), [0, 5, 10, 15]);
        assert!(ticks(u64::MAX / 4).len() <= 7);
    }

    #[test]
    fn column_parts_are_stacked_and_the_smallest_is_visible() {
        let scale = Scale::new(100, 200.0);
        let parts =
            [("resumed", 60), ("cut", 0), ("exhausted", 1)].map(|(class, amount)| Segment { class, amount });
        let (drawn, top) = stack_segments(&parts, &scale, TOP_MARGIN_PX + 200.0);
        assert_eq!(drawn.len(), 2, "an empty part is not drawn");
        assert_eq!(drawn[0], ("resumed", 120.0, 120.0));
        let (class, y, height) = drawn[1];
        assert!(
            class == "exhausted" && height >= MIN_SEGMENT_HEIGHT_PX && (y + height - 119.0).abs() < 1e-9,
            "{drawn:?}"
        );
        assert!((top - y).abs() < 1e-9);
    }

    #[test]
    fn a_sparkline_fills_its_height_and_a_constant_one_is_centred() {
        assert_eq!(points(&[0.0, 5.0, 10.0], 0.0, 10.0), [(2.0, 26.0), (41.0, 15.0), (80.0, 4.0)]);
        assert_eq!(points(&[3.0, 3.0], 3.0, 3.0), [(2.0, 15.0), (80.0, 15.0)]);
        assert_eq!(draw_sparkline(&[1.0], &[], "x").into_string(), "");
    }

    #[test]
    fn plot_labels_are_escaped() {
        let column =
            Column { title: "<b>".to_owned(), label: ["<i>".to_owned(), String::new()], ..Column::default() };
        let plot = ColumnPlot {
            label: "\"<",
            columns: &[column],
            height: 100.0,
            format_tick: |tick| tick.to_string(),
            min_axis_end: 0,
        };
        let drawn = plot.draw(&html! {}).into_string();
        assert!(!drawn.contains("<b>") && !drawn.contains("<i>") && !drawn.contains("\"<\""), "{drawn}");
    }

    #[test]
    fn a_bar_never_exceeds_its_length() {
        let bar = Bar {
            class: "bad",
            spent: 130.0,
            held: 20.0,
            forecast: Some(400.0),
            height: 12,
            ..Bar::default()
        };
        let drawn = bar.draw("used up").into_string();
        assert!(
            drawn.contains("width=\"100.00%\"") && !drawn.contains("held") && !drawn.contains("forecast"),
            "{drawn}"
        );
    }
}
