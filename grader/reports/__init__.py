def write_reports(report, results, about):
    (report / "index.html").write_text(str(about))
