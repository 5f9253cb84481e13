//! Tests where futures are polled, and how the permits of the pool are released.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::task::yield_now;

use super::*;
use crate::body::body_from;

/// Limits each wait in these tests, so that a lost wake-up fails the test instead of blocking it.
async fn with_timeout<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), work).await.unwrap()
}

#[tokio::test]
async fn only_large_work_leaves_its_thread() {
    let own = thread::current().id();
    let polled_on = with_timeout(PooledFuture::new(async move {
        let mut threads = vec![thread::current().id()];
        let small = enter_pool_if_large(LARGE_BYTES - 1).await;
        threads.push(thread::current().id());
        drop(small);
        let guard = enter_pool_if_large(LARGE_BYTES).await;
        assert!(is_in_pool());
        threads.push(thread::current().id());
        yield_now().await;
        assert!(is_in_pool());
        drop(guard);
        yield_now().await;
        threads.push(thread::current().id());
        threads
    }))
    .await;
    let is_own: Vec<bool> = polled_on.iter().map(|thread| *thread == own).collect();
    assert_eq!(is_own, [true, true, false, true]);
    assert!(enter_pool_if_large(LARGE_BYTES).await.0.is_none() && !is_in_pool());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_future_polled_on_the_pool_misses_no_wake() {
    let (asks, mut requested) = mpsc::channel(1);
    let (answers, mut answered) = mpsc::channel(1);
    let answering = tokio::spawn(PooledFuture::new(async move {
        let _guard = enter_pool_if_large(LARGE_BYTES).await;
        while let Some(number) = requested.recv().await {
            answers.send(number + 1).await.unwrap();
        }
    }));
    for number in 0..2_000 {
        asks.send(number).await.unwrap();
        assert_eq!(with_timeout(answered.recv()).await, Some(number + 1));
    }
    drop(asks);
    with_timeout(answering).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_built_on_the_pool_arrives_whole() {
    let body = body_from(100, |outlet| async move {
        let _guard = enter_pool_if_large(LARGE_BYTES).await;
        for number in 0..2_000_u32 {
            outlet.send(Bytes::from(vec![number.to_le_bytes()[0]; 60])).await.unwrap();
        }
        Ok(())
    });
    let read = with_timeout(Box::pin(body).collect()).await.unwrap().to_bytes();
    let expected: Vec<u8> = (0..2_000_u32).flat_map(|number| [number.to_le_bytes()[0]; 60]).collect();
    assert_eq!(read, expected);
}

/// Without the pool this test would not end, because the only async worker would be busy.
#[tokio::test]
async fn a_cancelled_job_frees_its_slot() {
    let places = pool().available_permits().max(1) * 2;
    let started = Arc::new(AtomicUsize::new(0));
    let busy: Vec<_> = (0..places)
        .map(|_| {
            let started = Arc::clone(&started);
            tokio::spawn(PooledFuture::new(async move {
                let _guard = enter_pool_if_large(LARGE_BYTES).await;
                started.fetch_add(1, Ordering::SeqCst);
                while !is_stopped() {
                    thread::sleep(Duration::from_millis(1));
                }
            }))
        })
        .collect();
    with_timeout(async {
        while started.load(Ordering::SeqCst) == 0 {
            yield_now().await;
        }
    })
    .await;
    let is_served = Arc::new(AtomicBool::new(false));
    let served = Arc::clone(&is_served);
    let next = tokio::spawn(PooledFuture::new(async move {
        let _guard = enter_pool_if_large(LARGE_BYTES).await;
        served.store(true, Ordering::SeqCst);
    }));
    for _ in 0..100 {
        yield_now().await;
    }
    assert!(!is_served.load(Ordering::SeqCst) && pool().available_permits() == 0);
    busy.iter().for_each(tokio::task::JoinHandle::abort);
    with_timeout(next).await.unwrap();
}
