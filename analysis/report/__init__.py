"""What people read of a cohort: tables, findings in sentences, and one HTML report.

`report_tables` computes tables by name, `findings` turns them into sentences, `html_report` puts
both on a page with the figures. Start with `table_spec` (what a table is) and `report_outline` (the
order of the report).
"""
