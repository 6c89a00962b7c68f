"""Catalogs that threads share, and the same under churn."""

from __future__ import annotations

import threading

import semibandit as sb


def test_threads_share_a_catalog(tmp_path):
    page = sb.Catalog.partition({"even": 2, "odd": 1}, capacity=1)
    errors, counted = [], []

    def work(mine):
        try:
            n = 0
            for i in range(60):
                page.add((mine, i), "even" if i % 2 else "odd")
                shown = page.decide()
                assert len(shown) <= 3
                page.learn(shown, [0.5] * len(shown))  # another thread may have expired some of them
                n += len(shown)
                if i >= 5:
                    page.expire((mine, i - 5))
                if i % 20 == 0:
                    page.save(tmp_path / f"page{mine}")
            counted.append(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(page) == 20
    page._check()
    about = page.describe()
    assert about["expired"] == 4 * 55
    assert sum(row["count"] for row in page.rows()) + about["dropped"] <= sum(counted)
    for i in range(4):
        sb.Catalog.load(tmp_path / f"page{i}")._check()
