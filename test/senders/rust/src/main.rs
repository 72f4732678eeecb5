//! Sends a call of each type, and ends with the first error.
use segment::message::{Alias, Group, Identify, Page, Screen, Track, User};
use segment::{AutoBatcher, Batcher, HttpClient};
use serde_json::json;
use std::env::var;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = HttpClient::new(reqwest::Client::new(), var("COLLECTOR")?);
    let mut batcher = AutoBatcher::new(client, Batcher::new(None), var("WRITE_KEY")?);

    let user = || User::UserId { user_id: "u-1".into() };
    let traits = json!({ "plan": "pro", "name": "Jürgen 🚲" });
    batcher.push(Identify { user: user(), traits, ..Default::default() }).await?;
    let properties = json!({ "total": 12.5, "note": "日本" });
    batcher.push(Track { user: user(), event: "Order Completed".into(), properties, ..Default::default() }).await?;
    let properties = json!({ "url": "https://shop.example/products" });
    batcher.push(Page { user: user(), name: "Products".into(), properties, ..Default::default() }).await?;
    let properties = json!({ "from": "start" });
    batcher.push(Screen { user: user(), name: "Home".into(), properties, ..Default::default() }).await?;
    let traits = json!({ "seats": 5 });
    batcher.push(Group { user: user(), group_id: "g-1".into(), traits, ..Default::default() }).await?;
    let user = User::UserId { user_id: "u-2".into() };
    batcher.push(Alias { user, previous_id: "u-1".into(), ..Default::default() }).await?;
    batcher.flush().await?;
    Ok(())
}
