"""`plumbline backtest`: how well Plumbline would have done on incidents of the past."""
