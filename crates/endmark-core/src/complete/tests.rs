mod cases;
mod properties;
mod reference;
